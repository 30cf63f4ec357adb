import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { ALL_PROTOCOLS, replyAs, requestAs, streamAs } from '../conversion/convert-through.ts'
import { chopped } from '../generators/chunks.ts'
import { compareJson, compareText } from './golden-file.ts'

/**
 * Golden files of conversions to and from the Converse API, which no client speaks: `requests/<protocol>` are
 * sources, `replies/converse` and `streams/converse` too; targets are beside them, named by both protocols.
 */
const ROOT = fileURLToPath(new URL('converse/', import.meta.url))
const sourcesIn = (folder: string): string[] => readdirSync(`${ROOT}${folder}`)

describe.each(ALL_PROTOCOLS)('%s and the Converse API', (protocol) => {
  test.each(sourcesIn(`requests/${protocol}`))(
    'a request is converted to the Converse request of its golden file: %s',
    (name) => {
      const source = readFileSync(`${ROOT}requests/${protocol}/${name}`)
      compareJson(`${ROOT}requests/${protocol}-as-converse/${name}`, requestAs(protocol, 'converse', source))
    },
  )

  test.each(sourcesIn('replies/converse'))(
    'a whole Converse reply is converted to the reply of its golden file: %s',
    (name) => {
      const source = readFileSync(`${ROOT}replies/converse/${name}`)
      compareJson(`${ROOT}replies/converse-as-${protocol}/${name}`, replyAs('converse', protocol, source))
    },
  )

  test.each(sourcesIn('streams/converse'))(
    'a Converse stream is converted to the stream of its golden file, however the network divides it: %s',
    (name) => {
      const bytes = readFileSync(`${ROOT}streams/converse/${name}`)
      const { text } = streamAs('converse', protocol, [bytes])
      compareText(`${ROOT}streams/converse-as-${protocol}/${name}`, text)
      for (const size of [1, 2, 7, 64])
        expect(streamAs('converse', protocol, chopped(bytes, size)).text).toBe(text)
    },
  )
})
