import type { ClientProtocol } from '@sluice/wire/protocols'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { describe, expect, test } from 'vitest'
import { ResponsesTap, usageOfResponse } from '@sluice/wire/responses'
import { randomFrom } from '../fixtures/random.ts'
import { choppedAtRandom } from '../generators/chunks.ts'
import { ALL_CODECS, IDENTITY, replyAs, requestAs, streamAs } from './convert-through.ts'
import { checkChatStream, checkMessagesStream } from './grammar.ts'
import {
  chatReplySays,
  chatStreamSays,
  messagesReplySays,
  messagesStreamSays,
  type Content,
} from './oracle.ts'
import { checkResponsesStream } from './responses-grammar.ts'
import { recordedCuts } from './recorded-cuts.ts'
import { responseSays, responseStreamSays } from './responses-oracle.ts'
import { byTier } from '../runner/tier.ts'

/** The folder with recorded responses of providers, if there is one. */
const FOLDER = process.env['RECORDINGS']
/** Recorded streams up to this size are also cut into single bytes. */
const MAX_SINGLE_BYTES = byTier(6_000, Number.POSITIVE_INFINITY)
/** The number of positions at which each stream is cut off. */
const CUTS = byTier(20, 60)
const GRAMMARS = {
  chat: checkChatStream,
  messages: checkMessagesStream,
  responses: checkResponsesStream,
} as const
const STREAMS = { chat: chatStreamSays, messages: messagesStreamSays, responses: responseStreamSays } as const
const REPLIES = { chat: chatReplySays, messages: messagesReplySays, responses: responseSays } as const
const TARGETS = ['chat', 'messages', 'responses'] as const

/** Recordings in the folder that are not responses, each with what it is. */
const OTHERS: Readonly<Record<string, string>> = {
  'azure--azure-deepseek-reasoning-1.json': 'a chat completion',
  'openai--responses-delete.json': 'what a deletion answers',
  'openai--responses-input-items.json': 'a list of items',
}
/** Streams whose deltas differ from their items, because they were edited by hand. */
const EDITED = new Set(['openai--openai-shell-container-1.sse'])
/** Requests that continue something stored, so that they are refused where nothing is stored. */
const STATEFUL = /previous_response_id|conversation/
const WITHOUT_CONTEXT = /conversation|messages|No tool call/
const OUT_OF_RANGE = /temperature/

interface Recording {
  readonly name: string
  readonly bytes: Buffer
}

function recordings(isOne: (name: string) => boolean, protocol = 'responses'): Recording[] {
  if (FOLDER === undefined) return []
  const folder = join(FOLDER, protocol)
  return readdirSync(folder)
    .filter(isOne)
    .map((name) => ({ name, bytes: readFileSync(join(folder, name)) }))
}

const isRequest = (name: string): boolean => name.endsWith('.request.json')
const isReply = (name: string): boolean =>
  name.endsWith('.json') && !isRequest(name) && !name.startsWith('error-') && !(name in OTHERS)
const isStream = (name: string): boolean => name.endsWith('.sse') && !name.startsWith('error-')

const streams = recordings(isStream)
const replies = recordings(isReply)
const requests = recordings(isRequest)

if (FOLDER === undefined) replayNothing()
else replay()

function replayNothing(): void {
  test('recorded responses are not replayed where the environment variable RECORDINGS names no folder', () => {
    expect(streams).toEqual([])
  })
}

function replay(): void {
  describe('a recorded stream of a response', () => {
    test.each(streams)(
      'the recorded responses stream $name is forwarded natively unchanged, and its usage is read',
      ({ bytes }) => {
        for (const chunks of [[bytes], choppedAtRandom(bytes, 200, randomFrom(bytes.length))]) {
          const tap = new ResponsesTap()
          const forwarded = chunks.map((chunk) => tap.push(chunk).forward ?? Buffer.alloc(0))
          const { ending, complete } = tap.end()
          expect(Buffer.concat([...forwarded, ending]).toString('latin1')).toBe(bytes.toString('latin1'))
          expect(complete).toBe(true)
          const { usage } = responseStreamSays(bytes.toString())
          expect(tap.usage && tap.usage.input + tap.usage.cacheRead + tap.usage.cacheWrite5m).toBe(
            usage?.prompt,
          )
          expect(tap.usage?.output).toBe(usage?.output)
        }
      },
    )

    describe.each(TARGETS)('as %s', (to) => {
      test.each(streams)(
        'the recorded responses stream $name has the same content when converted, however it is divided',
        ({ name, bytes }) => {
          const { text, complete } = streamAs('responses', to, [bytes])
          expect(complete).toBe(true)
          GRAMMARS[to](text, true)
          for (const chunks of recordedCuts(bytes, MAX_SINGLE_BYTES))
            expect(streamAs('responses', to, chunks).text).toBe(text)
          if (EDITED.has(name)) return
          expect(told(STREAMS[to](text), to)).toEqual(told(responseStreamSays(bytes.toString()), to))
        },
      )

      test.each(streams)(
        'the recorded responses stream $name never looks finished where it was cut',
        ({ bytes }) => {
          const end = bytes.lastIndexOf('"type":"response.')
          for (let size = 0; size < Math.min(end, bytes.length); size += Math.ceil(bytes.length / CUTS)) {
            const { text, complete } = streamAs('responses', to, [bytes.subarray(0, size)])
            expect(complete, `${size} bytes`).toBe(false)
            GRAMMARS[to](text, false)
          }
        },
      )
    })
  })

  describe.each(TARGETS)('a recorded response as %s', (to) => {
    test.each(replies)('the recorded response $name has the same content when converted', ({ bytes }) => {
      expect(usageOfResponse(bytes).valid).toBe(true)
      expect(told(REPLIES[to](replyAs('responses', to, bytes)), to)).toEqual(
        told(responseSays(bytes.toString()), to),
      )
    })
  })

  describe.each(TARGETS)('a recorded request as %s', (to) => {
    test.each(requests)(
      'the recorded responses request $name is converted, or refused because it needs what only its provider stores',
      ({ bytes }) => {
        const { refused } = JSON.parse(requestAs('responses', to, bytes)) as { refused?: string }
        const isStateful = Object.keys(JSON.parse(bytes.toString()) as object).some((key) =>
          STATEFUL.test(key),
        )
        // Without what it continues, a request may have no messages, or outputs without calls.
        const expected = isStateful ? WITHOUT_CONTEXT : OUT_OF_RANGE
        if (refused !== undefined) expect(refused).toMatch(expected)
      },
    )
  })

  describe.each(['chat', 'messages'] as const)('a recorded answer of %s as a response', (from) => {
    const isAnswer = (name: string): boolean => !name.startsWith('error-') && !name.includes('.request.')
    test.each(recordings((name) => name.endsWith('.sse') && isAnswer(name), from))(
      'the recorded stream $name has the same content when converted to responses',
      ({ bytes }) => {
        const { text, complete } = streamAs(from, 'responses', [bytes])
        checkResponsesStream(text, complete)
        const folded = responseStreamSays(text)
        const source = STREAMS[from](bytes.toString())
        if (complete) expect(texts(folded)).toEqual(texts(source))
        const [last] = text.split('data: ').slice(-1)
        if (complete) expect(adjacentMessages(JSON.parse(last ?? '').response)).toEqual([])
      },
    )

    test.each(recordings((name) => name.endsWith('.json') && isAnswer(name), from))(
      'the recorded answer $name has the same content when converted to responses',
      ({ bytes }) => {
        const reply = ALL_CODECS[from].decodeReply(bytes)
        const response = ALL_CODECS.responses.encodeReply(reply, IDENTITY).toString()
        expect(texts(responseSays(response))).toEqual(texts(REPLIES[from](bytes.toString())))
        expect(adjacentMessages(JSON.parse(response))).toEqual([])
      },
    )
  })
}

/** Messages of a response that directly follow another one. */
function adjacentMessages({ output }: { readonly output: readonly { readonly type: string }[] }): unknown[] {
  return output.filter(({ type }, at) => type === 'message' && output[at - 1]?.type === 'message')
}

/**
 * Selects the compared content: chat marks encrypted thoughts, and a response without usage has no tokens
 * elsewhere.
 */
function told({ text, thoughts, calls, usage }: Content, to: ClientProtocol): unknown {
  const isNone = usage && usage.prompt + usage.output === 0
  return {
    text,
    calls,
    thoughts: to === 'chat' ? thoughts.replaceAll('\n', '') : thoughts,
    usage: isNone ? undefined : usage,
  }
}

function texts({ text, thoughts, calls }: Content): unknown {
  return { text, thoughts, calls }
}
