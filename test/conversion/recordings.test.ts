import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import process from 'node:process'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ChatTap } from '@sluice/wire/chat'
import type { PairedProtocol } from '../samples/paired-protocol.ts'
import { MessagesTap } from '@sluice/wire/messages'
import { scanObject } from '@sluice/wire/json/json-scan'
import type { MediaFetcher } from '../../src/call/media-fetcher.ts'
import { randomFrom } from '../fixtures/random.ts'
import { choppedAtRandom } from '../generators/chunks.ts'
import { byTier } from '../runner/tier.ts'
import { GRAMMARS } from './grammar.ts'
import { REPLY_SAYS, type Content, STREAM_SAYS } from './oracle.ts'
import {
  anyMedia,
  check,
  CHECKERS,
  convertReply,
  convertRequest,
  convertStream,
  OTHER,
  PROTOCOLS,
} from './convert.ts'
import { recordedCuts } from './recorded-cuts.ts'

/** The folder with recorded responses of providers, if there is one. */
const FOLDER = process.env['RECORDINGS']
const TAPS = { chat: () => new ChatTap({ swallowUsage: false }), messages: () => new MessagesTap() } as const
/** The form of a signature for a chat client. */
const SIGNATURE = '\n'
/** Recorded streams up to this size are also cut into single bytes. */
const MAX_SINGLE_BYTES = byTier(6_000, Number.POSITIVE_INFINITY)
/**
 * Streams up to this size are cut at each of their bytes, as is the end of each; longer ones at some bytes.
 */
const CUT_EVERYWHERE = byTier(200, 2_000)
const CUTS = byTier(20, 60)
const END_BYTES = byTier(30, 100)

interface Recording {
  readonly name: string
  readonly from: PairedProtocol
  readonly bytes: Buffer
}

const recordings = (ending: string): Recording[] =>
  FOLDER === undefined
    ? []
    : PROTOCOLS.flatMap((from) =>
        readdirSync(join(FOLDER, from))
          .filter((name) => name.endsWith(ending) && !name.startsWith('error-'))
          .map((name) => ({ name, from, bytes: readFileSync(join(FOLDER, from, name)) })),
      )
const streams = recordings('.sse')
const replies = recordings('.json')
/**
 * Recordings that need a different replay, by name, each with the reason. Errors: `recorded-calls.test.ts`.
 */
const FAILING_STREAMS: Record<string, string> = {
  'groq--tool-use-failed-error-streaming.sse': 'the provider reports an error in the middle of its stream',
}
const READS_MORE: Record<string, string> = {
  'messages--anthropic--supported-model-uses-20260209-web-tools.json':
    'the pages that a provider fetches while it answers are not known beforehand',
}
const REFUSED_REQUESTS: Record<string, string> = {
  'chat--openai--custom-llm-within-crew.json':
    'a content part has no type; it was recorded with the 400 that it got from the provider',
}

if (FOLDER === undefined) replayNothing()
else replay(FOLDER)

function replayNothing(): void {
  test('recorded replies are not replayed where the environment variable RECORDINGS names no folder', () => {
    expect(streams).toEqual([])
  })
}

function replay(folder: string): void {
  describe('a recorded stream', () => {
    test.each(streams)(
      'the recorded stream $from: $name is forwarded natively unchanged',
      ({ from, bytes }) => {
        for (const chunks of [[bytes], choppedAtRandom(bytes, 200, randomFrom(bytes.length))]) {
          const tap = TAPS[from]()
          const forwarded = chunks.map((chunk) => tap.push(chunk).forward ?? Buffer.alloc(0))
          const { ending } = tap.end()
          expect(Buffer.concat([...forwarded, ending]).toString('latin1')).toBe(bytes.toString('latin1'))
        }
      },
    )

    test.each(streams)(
      'the recorded stream $from: $name has the same content after conversion, however it is divided',
      (recording) => {
        const { name, from, bytes } = recording
        const { writes, complete } = convertStream(from, [bytes])
        const text = writes.join('')
        GRAMMARS[OTHER[from]](text, complete)
        expect(complete, FAILING_STREAMS[name]).toBe(!(name in FAILING_STREAMS))
        for (const chunks of recordedCuts(bytes, MAX_SINGLE_BYTES))
          expect(convertStream(from, chunks).writes.join('')).toBe(text)
        if (!complete) return
        const source = STREAM_SAYS[from](bytes.toString(), SIGNATURE)
        expect(STREAM_SAYS[OTHER[from]](text)).toEqual(from === 'chat' ? withUsage(source) : source)
      },
    )

    test.each(streams)(
      'the recorded stream $from: $name cut at any byte never looks finished',
      ({ from, bytes }) => {
        const finish = finishOf(from, bytes)
        const step = bytes.length <= CUT_EVERYWHERE ? 1 : Math.ceil(bytes.length / CUTS)
        for (let size = 0; size < finish; size += size > finish - END_BYTES ? 1 : step) {
          const cut = bytes.subarray(0, size)
          const { writes, complete } = convertStream(from, [cut])
          expect(complete, `${size} bytes`).toBe(false)
          GRAMMARS[OTHER[from]](writes.join(''), false)
          const native = TAPS[from]()
          const out = [native.push(cut).forward, native.end().ending]
            .map((part) => part?.toString() ?? '')
            .join('')
          expect(out).not.toMatch(/^data: (?:\[DONE\]|\{"type":"message_stop")/m)
        }
      },
    )
  })

  describe('a recorded reply', () => {
    test.each(replies)(
      'the recorded reply $from: $name has the same content after conversion',
      ({ from, bytes }) => {
        const converted = convertReply(from, bytes).toString()
        const source = REPLY_SAYS[from](bytes.toString(), SIGNATURE)
        expect(REPLY_SAYS[OTHER[from]](converted)).toEqual(from === 'chat' ? withUsage(source) : source)
      },
    )
  })

  describe('a recorded request', () => {
    let server: Server
    let media: MediaFetcher
    beforeAll(async () => {
      media = anyMedia()
      server = createServer((_request, reply) =>
        reply.writeHead(200, { 'content-type': 'image/png' }).end('picture'),
      )
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    })
    afterAll(async () => {
      await media?.close()
      server?.close()
    })

    const requests = readdirSync(join(folder, 'requests')).map((name) => ({
      name,
      from: name.split('--')[0] as PairedProtocol,
    }))
    const answered = requests.flatMap(({ name, from }) =>
      ['.json', '.sse']
        .map((ending) => join(folder, from, name.slice(`${from}--`.length).replace(/\.json$/, ending)))
        .filter((reply) => existsSync(reply))
        .map((reply) => ({ name, from, reply })),
    )
    test.each(answered)(
      'the recorded request $name has no more prompt tokens than the gateway holds quota for',
      ({ name, from, reply }) => {
        const { promptBound } = CHECKERS[from](scanObject(readFileSync(join(folder, 'requests', name))))
        const says = reply.endsWith('.sse') ? STREAM_SAYS : REPLY_SAYS
        const counted = says[from](readFileSync(reply, 'utf8')).usage?.prompt ?? 0
        const reason = READS_MORE[name]
        if (reason === undefined) expect(promptBound).toBeGreaterThanOrEqual(counted)
        else expect(promptBound, reason).toBeLessThan(counted)
      },
    )

    test.each(requests)(
      'the recorded request $name passes the check of its dialect, and its conversion that of the other dialect',
      async ({ name, from }) => {
        // Replaces the URLs of media from the time of the recording, so that nothing is fetched from them.
        const here = `"http://127.0.0.1:${(server.address() as AddressInfo).port}/a.png"`
        const text = readFileSync(join(folder, 'requests', name), 'utf8').replaceAll(/"https?:[^"]*"/g, here)
        // Some providers have the model in their URL.
        const named = text.includes('"model":') ? text : text.replace('{', '{"model":"m",')
        check(from, Buffer.from(named))
        const converted = await convertRequest(from, Buffer.from(named), media)
        const reason = REFUSED_REQUESTS[name]
        expect('refused' in converted ? converted.refused : undefined, reason).toEqual(
          reason === undefined ? undefined : expect.stringContaining('type'),
        )
        if ('body' in converted) check(OTHER[from], converted.body)
      },
    )
  })
}

/** A messages client always gets counts: 0 where the upstream reported none. */
function withUsage(said: Content): Content {
  return { ...said, usage: said.usage ?? { prompt: 0, cached: 0, output: 0 } }
}

/** Offset up to which a stream has not reported its finish. */
function finishOf(from: PairedProtocol, bytes: Buffer): number {
  const text = bytes.toString('latin1')
  const said = from === 'chat' ? /"finish_reason": ?"\w/.exec(text) : /"stop_reason": ?"\w/.exec(text)
  if (!said) return 0
  return said.index
}
