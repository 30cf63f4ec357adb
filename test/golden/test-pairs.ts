import type { ClientProtocol } from '@sluice/wire/protocols'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { pairsOf, replyAs, requestAs, streamAs } from '../conversion/convert-through.ts'
import { chopped } from '../generators/chunks.ts'
import { compareJson, compareText } from './golden-file.ts'

const ROOT = fileURLToPath(new URL('.', import.meta.url))

interface Case {
  readonly name: string
  readonly from: ClientProtocol
  readonly to: ClientProtocol
  readonly source: string
  readonly target: string
}

/**
 * Compares golden files of conversions between a protocol and those before it. Sources are in
 * `<protocol>/<kind>/<their protocol>`, and if `sharesSources` in those of `golden.test.ts`; targets are in
 * `<protocol>/<kind>`, named by both protocols. Adding a case is adding a file; `UPDATE_GOLDEN=1` writes
 * missing targets and leaves all others, and a person has to check a new one.
 */
export function testPairs(
  protocol: ClientProtocol,
  { sharesSources }: { readonly sharesSources: boolean },
): void {
  const casesOf = (kind: string, ending: string): Case[] =>
    pairsOf(protocol).flatMap(({ from, to }) => {
      const isShared = sharesSources && from !== protocol
      const folders = [`${ROOT}${protocol}/${kind}/${from}`, ...(isShared ? [`${ROOT}${kind}/${from}`] : [])]
      return folders
        .filter((folder) => existsSync(folder))
        .flatMap((folder) =>
          readdirSync(folder)
            .filter((file) => file.endsWith(`.${ending}`) && !file.includes('.as-'))
            .map((file) => {
              const name = file.slice(0, -ending.length - 1)
              const target = `${ROOT}${protocol}/${kind}/${from}-as-${to}/${name}.${ending}`
              return { name, from, to, source: `${folder}/${file}`, target }
            }),
        )
    })

  const requests = casesOf('requests', 'json')
  const replies = casesOf('replies', 'json')
  const streams = casesOf('streams', 'sse')

  describe('a request:', () => {
    test.each(requests)(
      'a request is converted to the expected one: $from as $to: $name',
      ({ from, to, source, target }) => {
        compareJson(target, requestAs(from, to, readFileSync(source)))
      },
    )
  })

  describe('a whole reply:', () => {
    test.each(replies)(
      'a whole reply is converted to the expected one: $from as $to: $name',
      ({ from, to, source, target }) => {
        compareJson(target, replyAs(from, to, readFileSync(source)))
      },
    )
  })

  describe('a stream, however the network cuts it:', () => {
    test.each(streams)(
      'a stream is converted to the expected one, however the network divides it: $from as $to: $name',
      ({ from, to, source, target }) => {
        const bytes = readFileSync(source)
        const { text } = streamAs(from, to, [bytes])
        compareText(target, text)
        for (const size of [1, 2, 7, 64]) expect(streamAs(from, to, chopped(bytes, size)).text).toBe(text)
      },
    )
  })

  test('every golden file of a conversion has its source file', () => {
    const targets = new Set([...requests, ...replies, ...streams].map(({ target }) => target))
    const files = ['requests', 'replies', 'streams'].flatMap((kind) =>
      readdirSync(`${ROOT}${protocol}/${kind}`)
        .filter((folder) => folder.includes('-as-'))
        .flatMap((folder) =>
          readdirSync(`${ROOT}${protocol}/${kind}/${folder}`).map(
            (file) => `${ROOT}${protocol}/${kind}/${folder}/${file}`,
          ),
        ),
    )
    expect(files.filter((file) => !targets.has(file))).toEqual([])
  })
}
