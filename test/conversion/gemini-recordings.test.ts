import { NO_USAGE } from '@sluice/wire/usage'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { describe, expect, test } from 'vitest'
import { scanObject } from '@sluice/wire/json/json-scan'
import { GeminiTap, readGeminiRequest, usageOfAnswer } from '@sluice/wire/gemini'
import { randomFrom } from '../fixtures/random.ts'
import { choppedAtRandom } from '../generators/chunks.ts'
import { ALL_CODECS, IDENTITY, replyAs, requestAs, streamAs } from './convert-through.ts'
import { checkGeminiStream } from './gemini-grammar.ts'
import { geminiReplySays, geminiStreamSays } from './gemini-oracle.ts'
import { checkChatStream, checkMessagesStream } from './grammar.ts'
import {
  chatReplySays,
  chatStreamSays,
  type Content,
  messagesReplySays,
  messagesStreamSays,
} from './oracle.ts'
import { checkResponsesStream } from './responses-grammar.ts'
import { recordedCuts } from './recorded-cuts.ts'
import { responseSays, responseStreamSays } from './responses-oracle.ts'
import { byTier } from '../runner/tier.ts'

/** The folder with recorded responses of providers, if there is one. */
const FOLDER = process.env['RECORDINGS']
/** Recorded streams up to this size are also cut into single bytes. */
const MAX_SINGLE_BYTES = byTier(6_000, Number.POSITIVE_INFINITY)
const GRAMMARS = {
  chat: checkChatStream,
  messages: checkMessagesStream,
  responses: checkResponsesStream,
} as const
const STREAMS = { chat: chatStreamSays, messages: messagesStreamSays, responses: responseStreamSays } as const
const REPLIES = { chat: chatReplySays, messages: messagesReplySays, responses: responseSays } as const
const TARGETS = ['chat', 'messages', 'responses'] as const

/** Recordings of another method than `generateContent`. */
const OTHER_METHODS =
  /cachedcontent|count-tokens|usage-limit|embedding|task-prefix|edge-agent|list-models|google-upload/
/** Requests with fields that only their provider has, so that conversions refuse them. */
const OF_GOOGLE = /cachedContent|fileUri|candidateCount/
/** Streams whose arguments arrive in pieces, with the assembled value. */
const IN_PIECES: Readonly<Record<string, unknown>> = {
  'gemini--google-stream-tool-call-array-arguments-missing-terminal-function-call.sse': {
    operations: [
      { action: 'add', description: 'Fresh red apple', itemid: 'apple_001', price: 0.5 },
      { action: 'add', description: 'Ripe yellow banana', itemid: 'banana_001', price: 0.3 },
    ],
  },
}

interface Recording {
  readonly name: string
  readonly bytes: Buffer
}

function recordings(isOne: (name: string) => boolean, protocol = 'gemini'): Recording[] {
  if (FOLDER === undefined) return []
  const folder = join(FOLDER, protocol)
  return readdirSync(folder)
    .filter(isOne)
    .map((name) => ({ name, bytes: readFileSync(join(folder, name)) }))
}

const isRequest = (name: string): boolean => name.endsWith('.request.json')
const isAnswer = (name: string): boolean => !isRequest(name) && !name.startsWith('error-')
const streams = recordings((name) => name.endsWith('.sse'))
const replies = recordings((name) => name.endsWith('.json') && isAnswer(name) && !OTHER_METHODS.test(name))
const requests = recordings((name) => isRequest(name) && !OTHER_METHODS.test(name))
const errors = recordings((name) => name.startsWith('error-') && !isRequest(name))

if (FOLDER === undefined) replayNothing()
else replay()

function replayNothing(): void {
  test('no recorded Gemini stream or response is replayed if RECORDINGS names no folder', () => {
    expect(streams).toEqual([])
  })
}

function replay(): void {
  describe('a recorded stream', () => {
    test.each(streams)(
      'the recorded Gemini stream $name is forwarded unchanged to a Gemini client, and its usage is read',
      ({ bytes }) => {
        for (const chunks of [[bytes], choppedAtRandom(bytes, 200, randomFrom(bytes.length))]) {
          const tap = new GeminiTap()
          const forwarded = chunks.map((chunk) => tap.push(chunk).forward ?? Buffer.alloc(0))
          const { complete } = tap.end()
          const last = tap.finalBytes(NO_USAGE)
          expect(Buffer.concat([...forwarded, last]).toString('latin1')).toBe(bytes.toString('latin1'))
          expect(last.toString()).toContain('finishReason')
          expect(complete).toBe(true)
          const { usage } = geminiStreamSays(bytes.toString())
          expect(tap.usage && tap.usage.input + tap.usage.cacheRead).toBe(usage?.prompt)
          expect(tap.usage?.output).toBe(usage?.output)
        }
      },
    )

    describe.each(TARGETS)('as %s', (to) => {
      test.each(streams)(
        'the recorded Gemini stream $name has the same content when converted, however it is divided',
        ({ name, bytes }) => {
          const { text, complete } = streamAs('gemini', to, [bytes])
          expect(complete).toBe(true)
          GRAMMARS[to](text, true)
          for (const chunks of recordedCuts(bytes, MAX_SINGLE_BYTES))
            expect(streamAs('gemini', to, chunks).text).toBe(text)
          const said = told(STREAMS[to](text))
          const source = told(geminiStreamSays(bytes.toString()))
          if (name in IN_PIECES) expect(said.calls[0]?.input).toEqual(IN_PIECES[name])
          const isWhole = !bytes.includes('partialArgs')
          expect(isWhole ? said : { ...said, calls: [] }).toEqual(isWhole ? source : { ...source, calls: [] })
        },
      )

      test.each(streams)(
        'the recorded Gemini stream $name is never converted to a complete stream if it was cut',
        ({ bytes }) => {
          const end = bytes.lastIndexOf('data: ')
          for (let size = 0; size < end; size += Math.ceil(bytes.length / 60)) {
            const { text, complete } = streamAs('gemini', to, [bytes.subarray(0, size)])
            expect(complete, `${size} bytes`).toBe(false)
            GRAMMARS[to](text, false)
          }
        },
      )
    })
  })

  describe.each(TARGETS)('a recorded response as %s', (to) => {
    test.each(replies)(
      'the recorded Gemini response $name has the same content when converted',
      ({ bytes }) => {
        const facts = usageOfAnswer(bytes)
        expect(facts.valid).toBe(true)
        const source = geminiReplySays(bytes.toString())
        expect(told(REPLIES[to](replyAs('gemini', to, bytes)))).toEqual(told(source))
        expect(facts.usage && facts.usage.input + facts.usage.cacheRead).toBe(source.usage?.prompt)
      },
    )
  })

  test.each([...streams, ...replies])(
    'the recorded Gemini response $name is charged for as many tokens as its totalTokenCount',
    ({ name, bytes }) => {
      const usage = name.endsWith('.sse') ? tapped(bytes).usage : usageOfAnswer(bytes).usage
      const totals = [...bytes.toString().matchAll(/"totalTokenCount": ?(\d+)/g)].map((match) =>
        Number(match[1]),
      )
      const total = totals.at(-1)
      if (total !== undefined) expect(usage && usage.input + usage.cacheRead + usage.output).toBe(total)
    },
  )

  describe.each(TARGETS)('a recorded request as %s', (to) => {
    test.each(requests)(
      'the recorded Gemini request $name is converted, or refused for a feature that only Google has',
      ({ bytes }) => {
        readGeminiRequest(scanObject(bytes), 'm')
        const { refused, request } = JSON.parse(requestAs('gemini', to, withModel(bytes))) as {
          refused?: string
          request?: unknown
        }
        if (refused !== undefined) expect(refused).toMatch(OF_GOOGLE)
        else expect(JSON.stringify(request)).not.toMatch(/"type":"(?:OBJECT|STRING|INTEGER|ARRAY)"/)
      },
    )
  })

  test.each(errors)(
    'the recorded Gemini error $name is read as an error, and not as a response',
    ({ bytes }) => {
      expect(usageOfAnswer(bytes)).toMatchObject({ valid: false, error: { data: expect.any(String) } })
      expect(() => ALL_CODECS.gemini.decodeReply(bytes)).toThrow('an error')
      const { text, complete } = streamAs('gemini', 'chat', [
        Buffer.from(`data: ${JSON.stringify(JSON.parse(bytes.toString()))}\r\n\r\n`),
      ])
      expect(complete).toBe(false)
      expect(text).toContain('"message":')
    },
  )

  describe.each(TARGETS)('a recorded response of %s as one of Gemini', (from) => {
    const ofOther = (ending: string) => (name: string) =>
      name.endsWith(ending) && isAnswer(name) && !NO_ANSWERS.has(name)
    test.each(recordings(ofOther('.sse'), from))(
      'the recorded stream $name has the same content when converted to Gemini',
      ({ name, bytes }) => {
        const { text, complete } = streamAs(from, 'gemini', [bytes])
        checkGeminiStream(text, complete)
        if (complete && !EDITED.has(name))
          expect(texts(geminiStreamSays(text))).toEqual(texts(STREAMS[from](bytes.toString())))
      },
    )

    test.each(recordings(ofOther('.json'), from))(
      'the recorded response $name has the same content when converted to Gemini',
      ({ bytes }) => {
        const reply = ALL_CODECS[from].decodeReply(bytes)
        const answer = ALL_CODECS.gemini.encodeReply(reply, IDENTITY).toString()
        expect(texts(geminiReplySays(answer))).toEqual(texts(REPLIES[from](bytes.toString())))
      },
    )
  })
}

/** Streams whose deltas differ from their items, because they were edited by hand. */
const EDITED = new Set(['openai--openai-shell-container-1.sse'])

/** Recordings of the other protocols that are not responses. */
const NO_ANSWERS = new Set([
  'azure--azure-deepseek-reasoning-1.json',
  'openai--responses-delete.json',
  'openai--responses-input-items.json',
])

/** The request with the model, which is in its path. */
function withModel(bytes: Buffer): Buffer {
  return Buffer.from(bytes.toString().replace('{', '{"model":"gemini-2.5-flash",'))
}

function tapped(bytes: Buffer): GeminiTap {
  const tap = new GeminiTap()
  tap.push(bytes)
  tap.end()
  return tap
}

/** The compared content, without usage and provider tools, which not all forms have. */
function told({ text, thoughts, calls, usage }: Content): Content {
  const isNone = usage && usage.prompt + usage.output === 0
  return { text, thoughts: thoughts.replaceAll('\n', ''), calls, usage: isNone ? undefined : usage }
}

function texts({ text, thoughts, calls }: Content): unknown {
  return { text, thoughts, calls }
}
