import type { ClientProtocol } from '@sluice/wire/protocols'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { NO_USAGE, type Usage } from '@sluice/wire/usage'
import type { Conversation, Part, ToolResultPart, Turn } from '@sluice/wire/conversation'
import type { Reply } from '@sluice/wire/reply'
import { scanObject } from '@sluice/wire/json/json-scan'
import { upstreamOf } from '../samples/conversation.ts'
import { randomFrom } from '../fixtures/random.ts'
import { answers, chatFrames, messagesFrames } from '../generators/answers.ts'
import { chopped, choppedAtRandom } from '../generators/chunks.ts'
import { conversations, thoughtfulConversations } from '../generators/conversations.ts'
import { geminiFrames, geminiReply } from '../generators/gemini-answers.ts'
import { geminiRequests } from '../generators/gemini-requests.ts'
import { chatRequests, messagesRequests } from '../generators/requests.ts'
import { responsesRequests } from '../generators/responses-requests.ts'
import { comparable } from './comparable-reply.ts'
import { ALL_CHECKERS, ALL_CODECS, IDENTITY, pairsOf, requestAs, streamAs } from './convert-through.ts'
import { checkGeminiArray, checkGeminiStream } from './gemini-grammar.ts'
import { checkChatStream, checkMessagesStream } from './grammar.ts'
import { checkResponsesStream } from './responses-grammar.ts'
import { lawRuns } from '../runner/tier.ts'
import { foldReply } from './fold-reply.ts'

const OTHERS = ['chat', 'messages', 'responses'] as const
const FRAMES = {
  chat: chatFrames,
  messages: messagesFrames,
  responses: (answer: Parameters<typeof chatFrames>[0]): string[] =>
    streamAs('chat', 'responses', [Buffer.from(chatFrames(answer).join(''))])
      .text.split(/(?<=\n\n)/)
      .filter((frame) => frame !== ''),
} as const
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
} as const

/** A model that supports penalties. */
const OLDEST = 'gemini-2.0-flash'
/** A model that supports a thinking budget, and no signatures. */
const OLD = 'gemini-2.5-flash'
/** A model that supports thinking levels, and requires signatures. */
const NEW = 'gemini-3.1-pro'

/** Encodes to the protocol and decodes the result; the path of a request states what its body does not. */
function there(protocol: ClientProtocol, conversation: Conversation, dropped: Set<string>): Conversation {
  const { model, stream } = conversation
  const body = ALL_CODECS[protocol].encodeRequest(conversation, upstreamOf(model), dropped)
  ALL_CHECKERS[protocol](scanObject(body))
  const {
    repeated: _,
    showsThoughts: _shows,
    ...back
  } = ALL_CODECS[protocol].decodeRequest(scanObject(body), dropped)
  return { ...back, model, stream, includeUsage: true }
}

/**
 * A conversation that Gemini can express: without cache marks and names of files, and with one text in a
 * result.
 */
function expressible(conversation: Conversation): Conversation {
  const result = (part: ToolResultPart): ToolResultPart => {
    const text = part.parts.map((one) => (one.kind === 'text' ? one.text : '')).join('\n')
    return { ...part, parts: text === '' ? [] : [{ kind: 'text', text: `said ${text}` }] }
  }
  const turns = conversation.turns.map((turn) => ({
    ...turn,
    parts: turn.parts.map((part) => (part.kind === 'tool-result' ? result(part) : part)),
  }))
  return JSON.parse(
    JSON.stringify({ ...conversation, turns, parallelTools: undefined }),
    (key, value: unknown) =>
      key === 'cache' || key === 'strict' || (key === 'name' && String(value).endsWith('.pdf'))
        ? undefined
        : value,
  ) as Conversation
}

/** The conversation with a signature at the first call of each step. */
function signed(conversation: Conversation): Conversation {
  const turns = conversation.turns.map((turn): Turn => {
    const at = turn.parts.findIndex(({ kind }) => kind === 'tool-call')
    if (at < 0) return turn
    const proof = { protocol: 'gemini', value: 'c2lnbmF0dXJl', signs: 'call' } as const
    const thought: Part = { kind: 'thinking', text: '', proof }
    return { ...turn, parts: [...turn.parts.slice(0, at), thought, ...turn.parts.slice(at)] }
  })
  return { ...conversation, model: NEW, turns }
}

const plain = (conversation: Conversation): unknown => JSON.parse(JSON.stringify(conversation))

describe('a conversation that Gemini can express', () => {
  const any = fc
    .oneof({ weight: 4, arbitrary: conversations() }, { weight: 1, arbitrary: thoughtfulConversations() })
    .map(expressible)

  test('a conversation that Gemini can express is unchanged after it is encoded for Gemini and decoded again', () => {
    fc.assert(
      fc.property(any.map(signed), (conversation) => {
        const dropped = new Set<string>()
        const back = there('gemini', conversation, dropped)
        expect([...dropped]).toEqual([])
        expect(plain(back)).toEqual(plain(conversation))
      }),
      { numRuns: lawRuns(400) },
    )
  })

  test.each(OTHERS)(
    'a Gemini request converted to %s and back to Gemini is unchanged byte for byte',
    (other) => {
      fc.assert(
        fc.property(any, (given) => {
          const conversation = { ...given, stop: other === 'responses' ? [] : given.stop }
          const none = new Set<string>()
          const first = ALL_CODECS.gemini.encodeRequest(conversation, upstreamOf(OLD), none)
          const { model } = given
          const back = there(
            other,
            { ...there('gemini', { ...conversation, model: OLD }, none), model },
            none,
          )
          expect(ALL_CODECS.gemini.encodeRequest(back, upstreamOf(OLD), none).toString()).toBe(
            first.toString(),
          )
        }),
        { numRuns: lawRuns(300) },
      )
    },
  )

  test('a conversation converted from Gemini to chat and back keeps its seed and its penalties', () => {
    const penalty = fc.double({ min: -2, max: 2, noNaN: true }).map((n) => n + 0)
    const drawn = fc.record({ seed: fc.integer(), presencePenalty: penalty, frequencyPenalty: penalty })
    fc.assert(
      fc.property(any, drawn, (given, stated) => {
        const dropped = new Set<string>()
        const conversation = { ...given, ...stated, model: OLDEST }
        const back = there('chat', there('gemini', conversation, dropped), dropped)
        expect(back).toMatchObject(stated)
        expect(there('gemini', back, dropped)).toMatchObject(stated)
        expect([...dropped]).not.toContain('seed')
      }),
      { numRuns: lawRuns(200) },
    )
  })

  test('a request converted to Gemini begins with the same bytes as the request of each earlier turn of the user', () => {
    const bodyOf = (conversation: Conversation, turns: readonly Turn[]): string =>
      ALL_CODECS.gemini
        .encodeRequest({ ...conversation, turns }, upstreamOf(NEW), new Set())
        .toString()
        .replace(/\],"(?:tools|generationConfig)":.*$|\]\}$/s, '')
    fc.assert(
      fc.property(any, (conversation) => {
        const { turns } = conversation
        const whole = bodyOf(conversation, turns)
        for (const [at, { role }] of turns.entries())
          if (role === 'user')
            expect(whole.startsWith(bodyOf(conversation, turns.slice(0, at + 1)))).toBe(true)
      }),
      { numRuns: lawRuns(200) },
    )
  })
})

describe.each(pairsOf('gemini'))('any valid request of $from as $to', ({ from, to }) => {
  test('any valid request is converted to or from Gemini into a valid request, or refused with a reason', () => {
    fc.assert(
      fc.property(REQUESTS[from](), (text) => {
        ALL_CHECKERS[from](scanObject(Buffer.from(text)))
        const converted = requestAs(from, to, Buffer.from(text))
        expect(requestAs(from, to, Buffer.from(text))).toBe(converted)
        const { refused, dropped } = JSON.parse(converted) as { refused?: string; dropped?: string[] }
        if (refused !== undefined) expect(refused).toMatch(/\S/)
        for (const name of dropped ?? []) expect(name).toMatch(/^(?!.*secret)[\w.]{1,40}$/)
      }),
      { numRuns: lawRuns(500) },
    )
  })
})

/** The content of a stream, in the shared form. */
function folded(protocol: ClientProtocol, text: string): Reply | undefined {
  const decoder = ALL_CODECS[protocol].streamDecoder()
  return foldReply([...decoder.push(Buffer.from(text)), ...decoder.end()])
}

describe.each(OTHERS)('an answer of %s as one of Gemini', (from) => {
  test('a response converted to Gemini has the same content whole and streamed, and its stream is valid', () => {
    fc.assert(
      fc.property(answers(), (answer) => {
        const bytes = Buffer.from(FRAMES[from](answer).join(''))
        const before = folded(from, bytes.toString()) as Reply
        const { text, complete } = streamAs(from, 'gemini', [bytes])
        expect(complete).toBe(true)
        checkGeminiStream(text, true)
        const streamed = folded('gemini', text)
        const whole = ALL_CODECS.gemini.decodeReply(ALL_CODECS.gemini.encodeReply(before, IDENTITY))
        expect(essence(streamed)).toEqual(essence(whole))
        expect(essence(streamed)).toEqual(essence(before))
      }),
      { numRuns: lawRuns(500) },
    )
  })

  test('a stream converted to Gemini is the same as an array and however it is divided, and is incomplete if it was cut', () => {
    fc.assert(
      fc.property(
        answers(),
        fc.integer(),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (answer, seed, share) => {
          const frames = FRAMES[from]({ ...answer, quirks: { ...answer.quirks, noise: false } })
          const bytes = Buffer.from(frames.join(''))
          const { text } = streamAs(from, 'gemini', [bytes])
          expect(streamAs(from, 'gemini', choppedAtRandom(bytes, 40, randomFrom(seed))).text).toBe(text)
          const array = streamAs(from, 'gemini', [bytes], undefined, { jsonArray: true }).text
          checkGeminiArray(array, true)
          expect(array).toBe(`[${text.replaceAll('\r\n\r\ndata: ', ',\r\n').slice('data: '.length, -4)}]`)
          const last = frames.findIndex((frame) =>
            /"finish_reason":"|"stop_reason":"|"response\.(?:comp|inc)/.test(frame),
          )
          const upTo = Buffer.from(frames.slice(0, last + 1).join(''))
          const cut = streamAs(from, 'gemini', [upTo.subarray(0, Math.floor(share * (upTo.length - 4)))])
          expect(cut.complete).toBe(false)
          checkGeminiStream(cut.text, false)
        },
      ),
      { numRuns: lawRuns(300) },
    )
  })
})

describe.each(OTHERS)('an answer of Gemini as one of %s', (to) => {
  test('a converted Gemini response has the same content whole and streamed, and its stream is valid in the protocol', () => {
    fc.assert(
      fc.property(answers(), (answer) => {
        const stream = geminiFrames(answer).join('')
        const before = folded('gemini', stream) as Reply
        expect(essence(before)).toEqual(
          essence(ALL_CODECS.gemini.decodeReply(Buffer.from(geminiReply(answer)))),
        )
        const { text, complete } = streamAs('gemini', to, [Buffer.from(stream)])
        expect(complete).toBe(true)
        GRAMMARS[to](text, true)
        const whole = ALL_CODECS[to].decodeReply(ALL_CODECS[to].encodeReply(before, IDENTITY))
        expect(essence(folded(to, text))).toEqual(essence(whole))
        expect(essence(whole)).toEqual(essence(before))
      }),
      { numRuns: lawRuns(500) },
    )
  })

  test('a converted Gemini stream is the same however its bytes are divided, and never complete if it was cut', () => {
    fc.assert(
      fc.property(
        answers(),
        fc.integer(),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (answer, seed, share) => {
          const frames = geminiFrames(answer)
          const bytes = Buffer.from(frames.join(''))
          const { text } = streamAs('gemini', to, [bytes])
          for (const chunks of [choppedAtRandom(bytes, 60, randomFrom(seed)), chopped(bytes, 1)])
            expect(streamAs('gemini', to, chunks).text).toBe(text)
          // The last chunk has the finish reason: a stream that is cut within that chunk is truncated.
          const upTo = bytes.length - Buffer.byteLength(/\s*$/.exec(frames.at(-1) ?? '')?.[0] ?? '')
          const cut = streamAs('gemini', to, [bytes.subarray(0, Math.floor(share * (upTo - 1)))])
          expect(cut.complete).toBe(false)
          GRAMMARS[to](cut.text, false)
        },
      ),
      { numRuns: lawRuns(200) },
    )
  })
})

/**
 * Reduces a reply to what all protocols can express. Ignored are the order of its parts, its id, whether a
 * stop sequence or a call ended it (but not that it was truncated), the difference between no usage and zero
 * usage, and which tokens were written to a cache.
 */
function essence(reply: Reply | undefined): unknown {
  if (!reply) return undefined
  const { text, thoughts, calls, usage = NO_USAGE } = comparable(reply, 'in sum') as Record<string, unknown>
  const { input, cacheRead, cacheWrite5m, cacheWrite1h, output } = usage as Usage
  const { reason } = reply.stop
  return {
    text,
    thoughts,
    calls: (calls as { readonly input: string }[]).map((call) => ({ ...call, input: call.input.trim() })),
    usage: { input: input + cacheWrite5m + cacheWrite1h, cacheRead, output },
    model: reply.model,
    isCut: reason === 'length' || reason === 'refusal',
  }
}

describe('usage of a response', () => {
  const counts = fc.nat(100_000_000)
  const usages: fc.Arbitrary<Usage> = fc
    .record({
      input: fc.integer({ min: 1, max: 1e8 }),
      cacheRead: counts,
      output: fc.integer({ min: 1, max: 1e8 }),
    })
    .chain((usage) => fc.nat(usage.output).map((reasoning) => ({ ...NO_USAGE, ...usage, reasoning })))

  test('usage encoded for Gemini is decoded unchanged, and its totalTokenCount is the sum of its counts', () => {
    fc.assert(
      fc.property(usages, (usage) => {
        const reply: Reply = { id: 'r', model: 'm', parts: [], stop: { reason: 'end' }, usage }
        const bytes = ALL_CODECS.gemini.encodeReply(reply, IDENTITY)
        expect(ALL_CODECS.gemini.decodeReply(bytes).usage).toEqual(usage)
        const told = (JSON.parse(bytes.toString()) as { usageMetadata: Record<string, number> }).usageMetadata
        const sum = ['promptTokenCount', 'candidatesTokenCount', 'thoughtsTokenCount'].map(
          (name) => told[name] ?? 0,
        )
        expect(told['totalTokenCount']).toBe(sum.reduce((a, b) => a + b, 0))
      }),
      { numRuns: lawRuns(500) },
    )
  })
})
