import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { converseCodec } from '@sluice/wire/converse'
import type { Reply } from '@sluice/wire/reply'
import { upstreamOf } from '../samples/conversation.ts'
import { randomFrom } from '../fixtures/random.ts'
import { answers } from '../generators/answers.ts'
import { chopped, choppedAtRandom } from '../generators/chunks.ts'
import { conversations, thoughtfulConversations } from '../generators/conversations.ts'
import { converseFrames, converseReply } from '../generators/converse-answers.ts'
import { geminiRequests } from '../generators/gemini-requests.ts'
import { chatRequests, messagesRequests } from '../generators/requests.ts'
import { responsesRequests } from '../generators/responses-requests.ts'
import { lawRuns } from '../runner/tier.ts'
import { comparable } from './comparable-reply.ts'
import { ALL_CODECS, ALL_PROTOCOLS, IDENTITY, requestAs, streamAs } from './convert-through.ts'
import { checkGeminiStream } from './gemini-grammar.ts'
import { checkChatStream, checkMessagesStream } from './grammar.ts'
import { checkResponsesStream } from './responses-grammar.ts'
import { foldReply } from './fold-reply.ts'

const REQUESTS = {
  chat: chatRequests,
  messages: messagesRequests,
  responses: responsesRequests,
  gemini: geminiRequests,
} as const
const GRAMMARS = {
  chat: checkChatStream,
  messages: checkMessagesStream,
  responses: checkResponsesStream,
  gemini: checkGeminiStream,
} as const
/** Models that refuse what other models accept. */
const MODELS = [
  'eu.amazon.nova-lite-v1:0',
  'us.meta.llama4-maverick-17b-instruct-v1:0',
  'mistral.mistral-large-2407-v1:0',
  'eu.anthropic.claude-sonnet-4-5-20250929-v1:0',
  'vendor.unknown-v1:0',
]

describe.each(ALL_PROTOCOLS)('any valid request of %s for the Converse API', (from) => {
  test('any valid request is converted to Converse, each time to the same request, or refused with a reason', () => {
    fc.assert(
      fc.property(REQUESTS[from](), fc.constantFrom(...MODELS), (text, model) => {
        const converted = requestAs(from, 'converse', Buffer.from(text), model)
        expect(requestAs(from, 'converse', Buffer.from(text), model)).toBe(converted)
        const { refused, dropped } = JSON.parse(converted) as { refused?: string; dropped?: string[] }
        if (refused !== undefined) expect(refused).toMatch(/\S/)
        for (const name of dropped ?? []) expect(name).toMatch(/^(?!.*secret)[\w.]{1,40}$/)
      }),
      { numRuns: lawRuns(600) },
    )
  })
})

test('a request converted to Converse begins with the same bytes as the request of each earlier turn of the user', () => {
  const any = fc.oneof(conversations(), thoughtfulConversations())
  fc.assert(
    fc.property(any, fc.constantFrom(...MODELS), (conversation, model) => {
      const bodyOf = (count: number): string =>
        converseCodec
          .encodeRequest(
            { ...conversation, turns: conversation.turns.slice(0, count) },
            upstreamOf(model),
            new Set(),
          )
          .toString()
          .replace(/\],"(?:toolConfig|inferenceConfig|additional|outputConfig)":.*$|\]\}$/s, '')
      const whole = bodyOf(conversation.turns.length)
      for (const [at, { role }] of conversation.turns.entries())
        if (role === 'user') expect(whole.startsWith(bodyOf(at + 1).replace(/\]\}$/, ''))).toBe(true)
    }),
    { numRuns: lawRuns(200) },
  )
})

/** The content of a stream, in the shared form. */
function folded(stream: string): Reply | undefined {
  const decoder = converseCodec.streamDecoder()
  return foldReply([...decoder.push(Buffer.from(stream)), ...decoder.end()])
}

test('a Converse response is read with the same content, whether it is whole or streamed', () => {
  fc.assert(
    fc.property(answers(), (answer) => {
      const whole = converseCodec.decodeReply(Buffer.from(converseReply(answer)))
      expect(comparable(folded(converseFrames(answer).join('')))).toEqual(comparable(whole))
    }),
    { numRuns: lawRuns(400) },
  )
})

describe.each(ALL_PROTOCOLS)('an answer of the Converse API as one of %s', (to) => {
  test('a converted Converse response has the same content whole and streamed, and its stream is valid in the protocol', () => {
    fc.assert(
      fc.property(answers(), (answer) => {
        const stream = converseFrames(answer).join('')
        const before = folded(stream) as Reply
        const { text, complete } = streamAs('converse', to, [Buffer.from(stream)])
        expect(complete).toBe(true)
        GRAMMARS[to](text, true)
        const decoder = ALL_CODECS[to].streamDecoder()
        const streamed = foldReply([...decoder.push(Buffer.from(text)), ...decoder.end()])
        const whole = ALL_CODECS[to].decodeReply(ALL_CODECS[to].encodeReply(before, IDENTITY))
        const said = (reply: Reply | undefined): unknown => {
          const { text: words, calls } = comparable(reply, 'in sum') as {
            text: string
            calls: readonly object[]
          }
          return { words, calls: calls.map((call) => JSON.stringify(call).replace(/"id":"[^"]*"/, '')) }
        }
        expect(said(streamed)).toEqual(said(whole))
      }),
      { numRuns: lawRuns(300) },
    )
  })

  test('a converted Converse stream is the same however its bytes are divided, and never complete if it was cut', () => {
    fc.assert(
      fc.property(
        answers(),
        fc.integer(),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (answer, seed, share) => {
          const frames = converseFrames(answer)
          const bytes = Buffer.from(frames.join(''))
          const { text } = streamAs('converse', to, [bytes])
          for (const chunks of [choppedAtRandom(bytes, 60, randomFrom(seed)), chopped(bytes, 1)])
            expect(streamAs('converse', to, chunks).text).toBe(text)
          const upTo = Buffer.from(frames.slice(0, -2).join(''))
          const cut = streamAs('converse', to, [upTo.subarray(0, Math.floor(share * upTo.length))])
          expect(cut.complete).toBe(false)
          GRAMMARS[to](cut.text, false)
        },
      ),
      { numRuns: lawRuns(150) },
    )
  })
})
