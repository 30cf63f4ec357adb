import type { ClientProtocol } from '@sluice/wire/protocols'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyCharacter } from '../generators/characters.ts'
import { numbersOfReport, type ReportedUsage } from '@sluice/wire/reported-usage'
import { NO_USAGE, type Usage } from '@sluice/wire/usage'
import type { ReplyContext, Conversation, Tool } from '@sluice/wire/conversation'
import type { Reply, ReplyEvent } from '@sluice/wire/reply'
import { scanObject } from '@sluice/wire/json/json-scan'
import { upstreamOf } from '../samples/conversation.ts'
import { randomFrom } from '../fixtures/random.ts'
import { answers, chatFrames, messagesFrames } from '../generators/answers.ts'
import { chopped, choppedAtRandom } from '../generators/chunks.ts'
import { conversations, thoughtfulConversations } from '../generators/conversations.ts'
import { geminiRequests } from '../generators/gemini-requests.ts'
import { chatRequests, messagesRequests } from '../generators/requests.ts'
import { responsesRequests } from '../generators/responses-requests.ts'
import { ALL_CHECKERS, ALL_CODECS, IDENTITY, pairsOf, requestAs, streamAs } from './convert-through.ts'
import { comparable } from './comparable-reply.ts'
import { checkChatStream, checkMessagesStream } from './grammar.ts'
import { checkResponsesStream } from './responses-grammar.ts'
import { lawRuns } from '../runner/tier.ts'
import { foldReply } from './fold-reply.ts'

const OTHERS = ['chat', 'messages'] as const
const FRAMES = { chat: chatFrames, messages: messagesFrames } as const
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

/** Encodes to the protocol and decodes the result. */
function there(protocol: ClientProtocol, conversation: Conversation, dropped: Set<string>): Conversation {
  const body = ALL_CODECS[protocol].encodeRequest(conversation, upstreamOf(conversation.model), dropped)
  ALL_CHECKERS[protocol](scanObject(body))
  const {
    repeated: _,
    showsThoughts: _shows,
    ...back
  } = ALL_CODECS[protocol].decodeRequest(scanObject(body), dropped)
  return { ...back, includeUsage: true }
}

/**
 * A conversation that responses can express: without stop sequences, with cache marks of one kind and only on
 * content.
 */
function expressible(conversation: Conversation): Conversation {
  const { tools } = conversation
  return JSON.parse(
    JSON.stringify({
      ...conversation,
      stop: [],
      tools: tools.map((tool) => ({ ...tool, cache: undefined })),
    }),
    (key, value: unknown) => (key === 'cache' ? { field: 'prompt_cache_breakpoint' } : value),
  ) as Conversation
}

/** Sets tools without `strict` to not strict, which is its default here. */
const comparableRequest = (conversation: Conversation): unknown =>
  JSON.parse(
    JSON.stringify({
      ...conversation,
      tools: conversation.tools.map((tool) => ({ ...tool, strict: tool.strict ?? false })),
    }),
  )

describe('a conversation that responses can express', () => {
  const any = fc
    .oneof({ weight: 4, arbitrary: conversations() }, { weight: 1, arbitrary: thoughtfulConversations() })
    .map(expressible)

  test('a conversation that responses can express is unchanged after it is encoded and decoded, and nothing is dropped', () => {
    fc.assert(
      fc.property(any, (conversation) => {
        const dropped = new Set<string>()
        const back = there('responses', conversation, dropped)
        expect([...dropped]).toEqual([])
        expect(comparableRequest(back)).toEqual(comparableRequest(conversation))
      }),
      { numRuns: lawRuns(400) },
    )
  })

  test.each(OTHERS)(
    'a conversation that responses can express is unchanged after a conversion through %s, byte for byte',
    (other) => {
      fc.assert(
        fc.property(any, (conversation) => {
          const none = new Set<string>()
          const upstream = upstreamOf(conversation.model)
          const first = ALL_CODECS.responses.encodeRequest(conversation, upstream, none)
          const back = there(other, there('responses', conversation, none), none)
          expect(ALL_CODECS.responses.encodeRequest(back, upstream, none).toString()).toBe(first.toString())
        }),
        { numRuns: lawRuns(300) },
      )
    },
  )
})

describe.each(pairsOf('responses'))('any valid request of $from as $to', ({ from, to }) => {
  test("any valid request is converted to a request that the other protocol's check accepts, or refused with a reason", () => {
    fc.assert(
      fc.property(REQUESTS[from](), (text) => {
        ALL_CHECKERS[from](scanObject(Buffer.from(text)))
        const converted = requestAs(from, to, Buffer.from(text))
        expect(requestAs(from, to, Buffer.from(text))).toBe(converted)
        const { refused, dropped } = JSON.parse(converted) as { refused?: string; dropped?: string[] }
        if (refused !== undefined) expect(refused).toMatch(/\S/)
        for (const name of dropped ?? []) expect(name).toMatch(/^(?!.*secret)[a-z_.]{1,40}$/)
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

describe.each(OTHERS)('an answer of %s as a response', (from) => {
  test('an answer converted to the responses dialect has the same content, whole and as a valid stream', () => {
    fc.assert(
      fc.property(answers(), (answer) => {
        const bytes = Buffer.from(FRAMES[from](answer).join(''))
        const before = folded(from, bytes.toString()) as Reply
        const { text, complete } = streamAs(from, 'responses', [bytes])
        expect(complete).toBe(true)
        checkResponsesStream(text, true)
        const streamed = folded('responses', text)
        const whole = ALL_CODECS.responses.decodeReply(ALL_CODECS.responses.encodeReply(before, IDENTITY))
        expect(comparable(streamed)).toEqual(comparable(whole))
        expect(essence(streamed)).toEqual(essence(before))
      }),
      { numRuns: lawRuns(500) },
    )
  })

  test('a stream converted to responses is the same however the network divides it, and looks unfinished where it was cut', () => {
    fc.assert(
      fc.property(
        answers(),
        fc.integer(),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (answer, seed, share) => {
          const frames = FRAMES[from]({ ...answer, quirks: { ...answer.quirks, noise: false } })
          const bytes = Buffer.from(frames.join(''))
          const { text } = streamAs(from, 'responses', [bytes])
          expect(streamAs(from, 'responses', choppedAtRandom(bytes, 40, randomFrom(seed))).text).toBe(text)
          const last = frames.findIndex((frame) => /"finish_reason":"|"stop_reason":"/.test(frame))
          const upTo = Buffer.from(frames.slice(0, last + 1).join(''))
          const cut = streamAs(from, 'responses', [upTo.subarray(0, Math.floor(share * (upTo.length - 4)))])
          expect(cut.complete).toBe(false)
          checkResponsesStream(cut.text, false)
        },
      ),
      { numRuns: lawRuns(300) },
    )
  })
})

describe.each(OTHERS)('a response as an answer of %s', (to) => {
  const responses = answers().map(
    (answer) => streamAs('chat', 'responses', [Buffer.from(chatFrames(answer).join(''))]).text,
  )

  test('a response converted from the responses dialect has the same content, whole and as a valid stream', () => {
    fc.assert(
      fc.property(responses, (stream) => {
        const before = folded('responses', stream) as Reply
        const { text, complete } = streamAs('responses', to, [Buffer.from(stream)])
        expect(complete).toBe(true)
        GRAMMARS[to](text, true)
        const whole = ALL_CODECS[to].decodeReply(ALL_CODECS[to].encodeReply(before, IDENTITY))
        expect(essence(folded(to, text))).toEqual(essence(whole))
        expect(essence(whole)).toEqual(essence(before))
      }),
      { numRuns: lawRuns(500) },
    )
  })

  test('a stream converted from responses is the same however the network divides it, and looks unfinished where it was cut', () => {
    fc.assert(
      fc.property(
        responses,
        fc.integer(),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (stream, seed, share) => {
          const bytes = Buffer.from(stream)
          const { text } = streamAs('responses', to, [bytes])
          for (const chunks of [choppedAtRandom(bytes, 60, randomFrom(seed)), chopped(bytes, 1)])
            expect(streamAs('responses', to, chunks).text).toBe(text)
          const end = stream.lastIndexOf('event: response.')
          const cut = streamAs('responses', to, [
            bytes.subarray(0, Math.floor(share * Buffer.byteLength(stream.slice(0, end)))),
          ])
          expect(cut.complete).toBe(false)
          GRAMMARS[to](cut.text, false)
        },
      ),
      { numRuns: lawRuns(200) },
    )
  })
})

describe('citations and log probabilities of tokens', () => {
  const cited = (reply: Reply | undefined): unknown => {
    const { citations, logprobs } = comparable(reply, 'in sum') as Record<string, unknown>
    return { citations, logprobs }
  }

  test('citations and log probabilities keep their text positions after a conversion from chat to responses and back', () => {
    fc.assert(
      fc.property(answers(), (answer) => {
        const stream = chatFrames(answer).join('')
        const response = streamAs('chat', 'responses', [Buffer.from(stream)]).text
        const back = streamAs('responses', 'chat', [Buffer.from(response)]).text
        expect(cited(folded('responses', response))).toEqual(cited(folded('chat', stream)))
        expect(cited(folded('chat', back))).toEqual(cited(folded('chat', stream)))
      }),
      { numRuns: lawRuns(500) },
    )
  })
})

/**
 * Reduces a reply to what all protocols can express. Ignored are the order of its parts, its id, where pages
 * are cited (messages cites with whole parts), whether a stop sequence or a call ended it (but not that it
 * was truncated), the difference between no usage and zero usage, and what a protocol states beside the
 * counts (the tier, the lifetime of what was written to a cache).
 */
function essence(reply: Reply | undefined): unknown {
  if (!reply) return undefined
  const {
    text,
    thoughts,
    calls,
    citations,
    usage = NO_USAGE,
  } = comparable(reply, 'in sum') as Record<string, unknown>
  const { reason } = reply.stop
  return {
    text,
    thoughts,
    calls,
    citations: (citations as { readonly url: string; readonly title: string }[]).map(({ url, title }) => ({
      url,
      title,
    })),
    usage: numbersOfReport(usage as ReportedUsage),
    model: reply.model,
    isCut: reason === 'length' || reason === 'refusal',
  }
}

describe('a tool of the client', () => {
  const tools: readonly Tool[] = [
    {
      name: 'sql',
      description: undefined,
      schema: undefined,
      strict: undefined,
      form: { type: 'custom', name: 'sql' },
    },
    {
      name: 'ns__read',
      description: undefined,
      schema: undefined,
      strict: undefined,
      form: { type: 'function', name: 'read', namespace: 'ns' },
    },
    ...(['shell', 'local_shell', 'apply_patch'] as const).map((name) => ({
      name,
      description: undefined,
      schema: undefined,
      strict: undefined,
      form: { type: name, name },
    })),
  ]
  const replyContext: ReplyContext = { tools }
  const called = (name: string, pieces: readonly string[]): ReplyEvent[] => [
    { kind: 'start', id: 'x', model: 'm', usage: undefined },
    { kind: 'part-start', index: 0, part: { kind: 'tool-call', id: 'call_1', name } },
    ...pieces.map((text): ReplyEvent => ({ kind: 'tool-input', index: 0, text })),
    { kind: 'part-end', index: 0 },
    { kind: 'end', stop: { reason: 'tool-calls' }, usage: undefined },
  ]
  const written = (
    events: readonly ReplyEvent[],
  ): { readonly text: string; readonly item: Record<string, unknown> } => {
    const encoder = ALL_CODECS.responses.streamEncoder(IDENTITY, { includeUsage: true, replyContext })
    const text = encoder.push(events) + encoder.finalFrames()
    const whole = ALL_CODECS.responses
      .encodeReply(foldReply(events) as Reply, IDENTITY, replyContext)
      .toString()
    const { output } = JSON.parse(whole) as { output: Record<string, unknown>[] }
    checkResponsesStream(text, true)
    const last = text.trimEnd().split('\n').at(-1) ?? ''
    expect(JSON.parse(last.slice('data: '.length)).response.output).toEqual(output)
    return { text, item: output[0] ?? {} }
  }
  test('a tool that accepts plain text gets the decoded text, in whatever pieces its JSON arguments arrive', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: anyCharacter, maxLength: 40 }),
        fc.integer(),
        fc.boolean(),
        (input, seed, isSpaced) => {
          const json = isSpaced ? `{ "input" : ${JSON.stringify(input)} }` : JSON.stringify({ input })
          const random = randomFrom(seed)
          const cut: string[] = []
          for (let at = 0; at < json.length; ) {
            const size = 1 + Math.floor(random() * 5)
            cut.push(json.slice(at, at + size))
            at += size
          }
          const { item } = written(called('sql', cut))
          expect(item).toMatchObject({ type: 'custom_tool_call', name: 'sql', call_id: 'call_1', input })
        },
      ),
      { numRuns: lawRuns(500) },
    )
  })

  test.each([
    ['in another form', '{"reason":"x","input":"y"}', 'y'],
    ['under another name', '{"query":"y"}', 'y'],
    ['as plain text', 'select 1', 'select 1'],
    ['not at all', '{}', ''],
    ['with line ends as they are', '{"input":"a\nb"}', 'a\nb'],
  ])("a tool that accepts plain text gets a model's text that arrived %s", (_, args, input) => {
    expect(written(called('sql', [args])).item).toMatchObject({ type: 'custom_tool_call', input })
  })

  test("a call of a tool in a namespace is converted to responses with the tool's name and its namespace", () => {
    const { item } = written(called('ns__read', ['{"a":1}']))
    expect(item).toMatchObject({ type: 'function_call', namespace: 'ns', name: 'read', arguments: '{"a":1}' })
  })

  test('a shell tool is called with an action that has the members which its schema requires', () => {
    expect(written(called('shell', ['{"commands":', '["ls"]}'])).item).toMatchObject({
      type: 'shell_call',
      action: { commands: ['ls'], timeout_ms: null, max_output_length: null },
      environment: null,
    })
    expect(written(called('shell', ['{"commands":["ls"],"timeout_ms":5}'])).item).toMatchObject({
      action: { commands: ['ls'], timeout_ms: 5, max_output_length: null },
    })
  })

  test.each([
    ['shell', '{"commands":'],
    ['shell', '{"commands":"ls -l"}'],
    ['shell', '{"command":["ls"]}'],
    ['local_shell', '{"command":"ls -l"}'],
    ['local_shell', '{"command":["ls",1]}'],
    ['apply_patch', '{"op":"x"}'],
    ['apply_patch', '{"type":"update_file","path":1}'],
  ])('a %s tool is called as a function where its arguments do not fit it: %s', (name, input) => {
    const { item } = written(called(name, [input]))
    expect(item).toMatchObject({ type: 'function_call', name, arguments: input })
    expect(item['id']).toMatch(/^fc_/)
  })
})

describe('usage of a response', () => {
  const counts = fc.nat(100_000_000)
  const usages: fc.Arbitrary<Usage> = fc
    .record({ input: counts, cacheRead: counts, cacheWrite5m: counts, output: counts })
    .chain((usage) => fc.nat(usage.output).map((reasoning) => ({ ...NO_USAGE, ...usage, reasoning })))
  const reply = (usage: Usage): Reply => ({
    id: 'r',
    model: 'm',
    parts: [{ kind: 'text', text: 'x' }],
    stop: { reason: 'end' },
    usage,
  })

  test('usage of a response is unchanged after encoding and decoding, and total_tokens is input plus output tokens', () => {
    fc.assert(
      fc.property(usages, (usage) => {
        const bytes = ALL_CODECS.responses.encodeReply(reply(usage), IDENTITY)
        // A converted response states `service_tier: default`.
        const decoded = ALL_CODECS.responses.decodeReply(bytes).usage as ReportedUsage
        expect(numbersOfReport(decoded)).toEqual(usage)
        expect(decoded.served).toEqual({ tier: 'standard' })
        const told = (JSON.parse(bytes.toString()) as { usage: Record<string, number> }).usage
        expect(told['total_tokens']).toBe((told['input_tokens'] ?? 0) + (told['output_tokens'] ?? 0))
        expect(told['input_tokens']).toBe(usage.input + usage.cacheRead + usage.cacheWrite5m)
      }),
      { numRuns: lawRuns(500) },
    )
  })
})
