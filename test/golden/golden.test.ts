import { readdirSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ClientProtocol, ConversionProtocol } from '@sluice/wire/protocols'
import type { MediaFetcher } from '../../src/call/media-fetcher.ts'
import { ALL_PROTOCOLS, replyAs, requestAs, streamAs } from '../conversion/convert-through.ts'
import { anyMedia, check, convertRequest, convertStream, OTHER, PROTOCOLS } from '../conversion/convert.ts'
import { chopped } from '../generators/chunks.ts'
import type { PairedProtocol } from '../samples/paired-protocol.ts'
import { readGolden, writeGolden } from './golden-file.ts'
import { prettyJson } from './pretty-json.ts'

/**
 * Golden files of conversions: `<kind>/<dialect>/<case>.txt` is a source in that dialect, and what it has to become in
 * others. CONTRIBUTING.md: Golden files says which cases there are, and how to add one.
 */
const ROOT = fileURLToPath(new URL('.', import.meta.url))
const KINDS = ['requests', 'replies', 'streams'] as const
/** What each ordered pair of dialects of clients has a case for, by a part of the case's name. */
const FEATURES: Readonly<Record<(typeof KINDS)[number], Readonly<Record<string, RegExp>>>> = {
  requests: {
    text: /text|messages|system|instructions/,
    media: /image|media|file|picture/,
    tools: /tool|function/,
    'choice of a tool': /choice|mode/,
    'calls and their results': /call|round-trip|output|response-/,
    thinking: /thinking|reasoning|effort/,
    'output format': /format|schema|json/,
    sampling: /sampling|stop|seed/,
    'web search': /search/,
    'what is left out': /dropped|lacks?|left-out|stay-behind|only-gemini/,
  },
  replies: {
    text: /text/,
    calls: /call|tool/,
    thinking: /thinking|reasoning|thought/,
    'a maximum that was reached': /length|max|incomplete/,
    refusal: /refus|filter|safety/,
  },
  streams: {
    text: /text/,
    calls: /call|tool/,
    thinking: /thinking|reasoning|thought/,
    'an end that is missing': /cut/,
    'an error': /error|failed/,
  },
}
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
  readonly file: string
  readonly name: string
  readonly from: ConversionProtocol
  readonly to: ConversionProtocol
  readonly source: Buffer
  readonly expected: string
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

const cases = { requests: casesOf('requests'), replies: casesOf('replies'), streams: casesOf('streams') }

test.each(cases.requests)(
  'a request is converted to that of its golden file: $from as $to: $name',
  async (one) => {
    const { from, to, source } = one
    const converted = isPair(from, to)
      ? await requestWithMedia(from, source)
      : requestAs(from as ClientProtocol, to, source)
    compareJson(one, converted)
  },
)

test.each(cases.replies)(
  'a whole reply is converted to that of its golden file: $from as $to: $name',
  (one) => compareJson(one, replyAs(one.from, one.to as ClientProtocol, one.source)),
)

test.each(cases.streams)(
  'a stream is converted to that of its golden file, however the network divides it: $from as $to: $name',
  (one) => {
    const { from, to, source, expected } = one
    const converted = (chunks: Iterable<Buffer>): string =>
      isPair(from, to)
        ? convertStream(from, chunks).writes.join('')
        : streamAs(from, to as ClientProtocol, chunks).text
    const whole = converted([source])
    if (!isWritten(one, whole)) expect(whole).toBe(expected)
    for (const size of [1, 7]) expect(converted(chopped(source, size))).toBe(whole)
  },
)

test.each(KINDS)(
  'among the golden %s, each ordered pair of dialects of clients has a case of each feature',
  (kind) => {
    const missing = ALL_PROTOCOLS.flatMap((from) =>
      ALL_PROTOCOLS.filter((to) => to !== from).flatMap((to) => {
        const names = cases[kind].filter((one) => one.from === from && one.to === to).map(({ name }) => name)
        return Object.entries(FEATURES[kind])
          .filter(([, pattern]) => !names.some((name) => pattern.test(name)))
          .map(([feature]) => `${from} as ${to}: ${feature}`)
      }),
    )
    expect(missing).toEqual([])
  },
)

function casesOf(kind: string): Case[] {
  return readdirSync(`${ROOT}${kind}`).flatMap((from) =>
    readdirSync(`${ROOT}${kind}/${from}`).flatMap((name) => {
      const file = `${ROOT}${kind}/${from}/${name}`
      const { source, targets } = readGolden(file)
      return targets.map(({ to, text }) => {
        const dialects = { from, to } as Pick<Case, 'from' | 'to'>
        return {
          file,
          name: name.replace('.txt', ''),
          ...dialects,
          source: Buffer.from(source),
          expected: text,
        }
      })
    }),
  )
}

/** Chat and Messages are converted by the gateway's own path, which fetches media; others by their codecs. */
function isPair(from: ConversionProtocol, to: ConversionProtocol): from is PairedProtocol {
  return PROTOCOLS.some((protocol) => protocol === from && OTHER[protocol] === to)
}

async function requestWithMedia(from: PairedProtocol, bytes: Buffer): Promise<string> {
  const host = `http://127.0.0.1:${(mediaServer.address() as AddressInfo).port}`
  const converted = await convertRequest(
    from,
    Buffer.from(bytes.toString().replaceAll(MEDIA_HOST, host)),
    media,
  )
  if ('refused' in converted)
    return JSON.stringify({ refused: converted.refused.replaceAll(host, MEDIA_HOST) })
  check(OTHER[from], converted.body)
  const request = converted.body.toString().replaceAll(host, MEDIA_HOST)
  return `{"dropped":${JSON.stringify(converted.dropped.toSorted())},"request":${request}}`
}

/** Compares JSON texts, ignoring white space. */
function compareJson(one: Case, json: string): void {
  const pretty = prettyJson(json)
  if (!isWritten(one, pretty)) expect(pretty).toBe(prettyJson(one.expected))
}

/** Writes a target that is empty if UPDATE_GOLDEN is set, for a person to check. */
function isWritten({ file, to, expected }: Case, text: string): boolean {
  if (expected.trim() !== '' || process.env['UPDATE_GOLDEN'] !== '1') return false
  const golden = readGolden(file)
  const targets = golden.targets.map((target) => (target.to === to ? { to, text } : target))
  writeGolden(file, { ...golden, targets })
  return true
}
