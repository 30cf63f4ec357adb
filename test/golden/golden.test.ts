import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { WireError } from '@sluice/wire/wire-error'
import type { PairedProtocol } from '../paired-protocol.ts'
import type { MediaFetcher } from '../../src/relay/media-fetcher.ts'
import {
  anyMedia,
  check,
  convertReply,
  convertRequest,
  convertStream,
  OTHER,
  PROTOCOLS,
} from '../conversion/convert.ts'
import { chopped } from '../generators/chunks.ts'
import { prettyJson } from './pretty-json.ts'

/**
 * Golden files of conversions: `<kind>/<protocol>/<case>` is the source, `<case>.as-<other protocol>` beside
 * it the target. Adding a case is adding a file. `UPDATE_GOLDEN=1` writes missing targets and leaves all
 * others; a person has to check a new target against the contract before it counts.
 */
const ROOT = fileURLToPath(new URL('.', import.meta.url))
const AT_LEAST = 120
const WRITES_MISSING = process.env['UPDATE_GOLDEN'] === '1'
/** Replaces the address of the media server, whose port changes. */
const MEDIA_HOST = 'http://media.test'
/** Media by the end of a path. Images and documents are recognised by their first bytes. */
const SERVED: Readonly<Record<string, readonly [type: string, bytes: string]>> = {
  png: ['image/png', 'picture'],
  pdf: ['application/pdf', 'document'],
  mp4: ['video/mp4', 'film'],
  txt: ['text/plain', 'words'],
  untold: ['application/octet-stream', '%PDF-1.4 document'],
}

interface Case {
  readonly name: string
  readonly from: PairedProtocol
  readonly source: string
  readonly target: string
}

let mediaServer: Server
let media: MediaFetcher
beforeAll(async () => {
  mediaServer = createServer((request, reply) => {
    const [type, bytes] = SERVED[request.url?.split('.').at(-1) ?? ''] ?? []
    if (!type) reply.writeHead(404).end()
    else reply.writeHead(200, { 'content-type': type }).end(bytes)
  })
  await new Promise<void>((resolve) => mediaServer.listen(0, '127.0.0.1', resolve))
  media = anyMedia()
})
afterAll(async () => {
  await media?.close()
  mediaServer?.close()
})

const requests = casesOf('requests', 'json')
const replies = casesOf('replies', 'json')
const streams = casesOf('streams', 'sse')

describe('requests in the other dialect', () => {
  test.each(requests)(
    'a request is converted to the request of its golden file in the other dialect: $from: $name',
    async ({ from, source, target }) => {
      const host = `http://127.0.0.1:${(mediaServer.address() as AddressInfo).port}`
      const bytes = Buffer.from(readFileSync(source, 'utf8').replaceAll(MEDIA_HOST, host))
      const converted = await convertRequest(from, bytes, media)
      if ('refused' in converted) {
        compareJson(target, JSON.stringify({ refused: converted.refused.replaceAll(host, MEDIA_HOST) }))
      } else {
        const { body, dropped } = converted
        check(OTHER[from], body)
        const request = body.toString().replaceAll(host, MEDIA_HOST)
        compareJson(target, `{"dropped":${JSON.stringify(dropped.toSorted())},"request":${request}}`)
      }
    },
  )
})

describe('whole replies in the other dialect', () => {
  test.each(replies)(
    'a whole reply is converted to the reply of its golden file in the other dialect: $from: $name',
    ({ from, source, target }) => {
      let reply: string
      try {
        reply = convertReply(from, readFileSync(source)).toString()
      } catch (error) {
        if (!(error instanceof WireError)) throw error
        reply = JSON.stringify({ refused: error.code })
      }
      compareJson(target, reply)
    },
  )
})

describe('streams in the other dialect', () => {
  test.each(streams)(
    'a stream is converted to its golden file, however the network divides it: $from: $name',
    ({ from, source, target }) => {
      const bytes = readFileSync(source)
      const whole = convertStream(from, [bytes]).writes.join('')
      compareText(target, whole)
      for (const size of [1, 2, 7, 64])
        expect(convertStream(from, chopped(bytes, size)).writes.join('')).toBe(whole)
    },
  )
})

test('every golden file of a conversion has its source file', () => {
  const known = new Set(
    [...requests, ...replies, ...streams].flatMap(({ source, target }) => [source, target]),
  )
  const files = ['requests', 'replies', 'streams'].flatMap((kind) =>
    readdirSync(`${ROOT}${kind}`).flatMap((protocol) =>
      readdirSync(`${ROOT}${kind}/${protocol}`).map((file) => `${ROOT}${kind}/${protocol}/${file}`),
    ),
  )
  expect(files.filter((file) => !known.has(file))).toEqual([])
})

test(`the golden files cover at least ${AT_LEAST} conversions, with requests, replies and streams in each direction`, () => {
  const cases = [...requests, ...replies, ...streams]
  expect(cases.length).toBeGreaterThanOrEqual(AT_LEAST)
  for (const some of [requests, replies, streams])
    expect(new Set(some.map(({ from }) => from))).toEqual(new Set(PROTOCOLS))
})

function casesOf(kind: string, ending: string): Case[] {
  return PROTOCOLS.flatMap((from) => {
    const folder = `${ROOT}${kind}/${from}`
    return readdirSync(folder)
      .filter((file) => file.endsWith(`.${ending}`) && !file.includes('.as-'))
      .map((file) => {
        const name = file.slice(0, -ending.length - 1)
        const target = `${folder}/${name}.as-${OTHER[from]}.${ending}`
        return { name, from, source: `${folder}/${file}`, target }
      })
  })
}

/** Compares JSON texts, ignoring white space. */
function compareJson(file: string, json: string): void {
  write(file, prettyJson(json))
  expect(prettyJson(json)).toBe(prettyJson(readFileSync(file, 'utf8')))
}

function compareText(file: string, text: string): void {
  write(file, text)
  expect(text).toBe(readFileSync(file, 'utf8'))
}

function write(file: string, text: string): void {
  if (WRITES_MISSING && !existsSync(file)) writeFileSync(file, text)
}
