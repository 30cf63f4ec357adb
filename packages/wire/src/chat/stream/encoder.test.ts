import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyCharacter } from '../../../../../test/generators/characters.ts'
import { NO_USAGE, type Usage } from '../../usage.ts'
import type { Reply, ReplyEvent, ReplyPart, StopReason } from '../../reply.ts'
import { encodeReply } from '../encode/reply.ts'
import { ChatStreamEncoder } from './encoder.ts'
import { readInclusiveUsage } from '../../reported-usage.ts'
import { writeUsage } from '../usage.ts'
import { foldReply } from '../../../../../test/conversion/fold-reply.ts'

const MINTED = { created: 1700000000, id: 'minted', upstream: 'messages' } as const
const USAGE: Usage = {
  ...NO_USAGE,
  input: 10,
  cacheRead: 200,
  cacheWrite5m: 30,
  cacheWrite1h: 4,
  output: 50,
  reasoning: 20,
}
const CHAT_USAGE = {
  prompt_tokens: 244,
  completion_tokens: 50,
  total_tokens: 294,
  prompt_tokens_details: {
    cached_tokens: 200,
    cached_creation_tokens: 34,
    text_tokens: 244,
    audio_tokens: 0,
    image_tokens: 0,
  },
  completion_tokens_details: { text_tokens: 30, audio_tokens: 0, image_tokens: 0, reasoning_tokens: 20 },
  prompt_cache_hit_tokens: 200,
  input_tokens: 244,
  output_tokens: 50,
  claude_cache_creation_5m_tokens: 30,
  claude_cache_creation_1h_tokens: 4,
  usage_semantic: 'compat',
  usage_source: 'vendor',
}
const PROOF = { protocol: 'messages', value: 'secret signature' } as const
const START: ReplyEvent = { kind: 'start', id: 'msg_1', model: 'm-1', usage: undefined }

const ended = (reason: StopReason): ReplyEvent => ({ kind: 'end', stop: { reason }, usage: USAGE })

function write(events: readonly ReplyEvent[], includeUsage = false): string {
  const encoder = new ChatStreamEncoder(MINTED, { includeUsage })
  return encoder.push(events) + encoder.finalFrames()
}

/** The data of frames that consist of one `data:` line. */
function dataOf(stream: string): string[] {
  const frames = stream.split('\n\n')
  expect(frames.pop()).toBe('')
  for (const frame of frames) expect(frame).toMatch(/^data: [^\n]*$/)
  return frames.map((frame) => frame.slice('data: '.length))
}

const chunk = (delta: object, finish_reason: string | null = null) => ({
  id: 'msg_1',
  object: 'chat.completion.chunk',
  created: MINTED.created,
  model: 'm-1',
  choices: [{ index: 0, delta, logprobs: null, finish_reason }],
})

/** The chunks of a part, including the first chunk of the stream. */
function chunksOf(...events: ReplyEvent[]): unknown[] {
  return dataOf(write([START, ...events]))
    .slice(1)
    .map((data) => JSON.parse(data) as unknown)
}

describe('the chunks of each event', () => {
  test('an encoded chat stream begins with a chunk that has the role and empty content', () => {
    expect(dataOf(write([START])).map((data) => JSON.parse(data))).toEqual([
      chunk({ role: 'assistant', content: '' }),
    ])
  })

  test('the beginning of a text is encoded as a first text chunk of chat', () => {
    expect(chunksOf({ kind: 'part-start', index: 0, part: { kind: 'text' } })).toEqual([
      chunk({ content: '' }),
    ])
  })

  test('a piece of text is encoded as content of a chat chunk', () => {
    const text = 'He said "\\" \u0000\u2028 \ud83d é 😀'
    expect(chunksOf({ kind: 'text', index: 0, text })).toEqual([chunk({ content: text })])
  })

  test('the beginning of a tool call is encoded as a chat chunk with id and name, numbered from 0', () => {
    const begin = (index: number, id: string): ReplyEvent => ({
      kind: 'part-start',
      index,
      part: { kind: 'tool-call', id, name: 'f' },
    })
    const call = (index: number, id: string) => ({
      tool_calls: [{ index, id, type: 'function', function: { name: 'f', arguments: '' } }],
    })
    expect(
      chunksOf(
        { kind: 'part-start', index: 0, part: { kind: 'thinking' } },
        { kind: 'part-start', index: 1, part: { kind: 'text' } },
        begin(2, 'a'),
        begin(3, 'b'),
      ).slice(1),
    ).toEqual([chunk(call(0, 'a')), chunk(call(1, 'b'))])
  })

  test('tool input is encoded as arguments of chat chunks, a missing one as an empty object', () => {
    const events: ReplyEvent[] = [
      { kind: 'part-start', index: 4, part: { kind: 'tool-call', id: 'a', name: 'f' } },
      { kind: 'tool-input', index: 4, text: '' },
      { kind: 'tool-input', index: 4, text: '{"a"' },
      { kind: 'part-end', index: 4 },
      { kind: 'part-start', index: 5, part: { kind: 'tool-call', id: 'b', name: 'f' } },
      { kind: 'part-end', index: 5 },
    ]
    const input = (index: number, text: string) => ({
      tool_calls: [{ index, function: { arguments: text } }],
    })
    const chunks = chunksOf(...events)
    expect(chunks).toHaveLength(4)
    expect(chunks[1]).toEqual(chunk(input(0, '{"a"')))
    expect(chunks[3]).toEqual(chunk(input(1, '{}')))
  })

  test('thoughts are encoded as reasoning_content of chat chunks, without their signature', () => {
    const events: ReplyEvent[] = [
      { kind: 'part-start', index: 0, part: { kind: 'thinking' } },
      { kind: 'thinking', index: 0, text: 'hm' },
      { kind: 'proof', index: 0, proof: PROOF },
      { kind: 'part-end', index: 0 },
    ]
    expect(chunksOf(...events)).toEqual([
      chunk({ reasoning_content: 'hm' }),
      chunk({ reasoning_content: '\n' }),
    ])
    expect(write([START, ...events])).not.toContain(PROOF.value)
  })

  test.each<[StopReason, string]>([
    ['end', 'stop'],
    ['stop-sequence', 'stop'],
    ['pause', 'stop'],
    ['length', 'length'],
    ['tool-calls', 'tool_calls'],
    ['refusal', 'content_filter'],
  ])('the stop reason %s is encoded as the finish_reason %s of chat', (reason, expected) => {
    const [last, done] = dataOf(write([START, ended(reason)])).slice(1)
    expect(JSON.parse(last ?? '')).toEqual(chunk({}, expected))
    expect(done).toBe('[DONE]')
  })

  test('usage is encoded as a last chat chunk without choices, if it was requested', () => {
    const [, , usage, done] = dataOf(write([START, ended('end')], true))
    expect(JSON.parse(usage ?? '')).toEqual({ ...chunk({}), choices: [], usage: CHAT_USAGE })
    expect(done).toBe('[DONE]')
    expect(write([START, ended('end')])).not.toContain('usage')
    expect(write([START, { kind: 'end', stop: { reason: 'end' }, usage: undefined }], true)).not.toContain(
      'usage',
    )
  })

  test('pings and events that only another dialect has are left out of a chat stream', () => {
    const value = { type: 'redacted_thinking', data: 'x' }
    expect(
      chunksOf(
        { kind: 'part-start', index: 0, part: { kind: 'opaque', protocol: 'messages', value } },
        { kind: 'part-end', index: 0 },
        { kind: 'ping' },
      ),
    ).toEqual([])
  })

  test('an encoded chat stream ends with [DONE] only if it is complete, and with an error frame after a failure', () => {
    const encoder = new ChatStreamEncoder(MINTED, { includeUsage: true })
    encoder.push([START, { kind: 'text', index: 0, text: 'x' }])
    expect(encoder.push([{ kind: 'failure', type: 'overloaded_error', message: 'busy' }])).toBe('')
    expect(encoder.finalFrames()).toBe('')
    const [frame] = dataOf(
      encoder.failureFrame({ type: 'api_error', code: 'upstream_error', message: 'busy' }),
    )
    expect(JSON.parse(frame ?? '')).toEqual({
      error: { type: 'api_error', code: 'upstream_error', message: 'busy' },
    })
  })

  test('an encoded chat reply without an id gets one', () => {
    expect(JSON.parse(dataOf(write([{ ...START, id: '' }]))[0] ?? '')).toMatchObject({ id: 'minted' })
  })
})

describe('a whole chat reply', () => {
  const whole = (parts: ReplyPart[], reason: StopReason = 'end'): Record<string, unknown> =>
    JSON.parse(
      encodeReply({ id: 'msg_1', model: 'm-1', parts, stop: { reason }, usage: USAGE }, MINTED).toString(),
    )

  test('an encoded whole chat reply has the documented fields', () => {
    const parts: ReplyPart[] = [
      { kind: 'thinking', text: 'hm', proof: PROOF },
      { kind: 'text', text: 'one ' },
      { kind: 'opaque', protocol: 'messages', value: { type: 'server_tool_use' } },
      { kind: 'text', text: 'two' },
      { kind: 'tool-call', id: 'a', name: 'f', input: '{"b":9007199254740993}' },
      { kind: 'tool-call', id: 'b', name: 'g', input: '' },
    ]
    expect(whole(parts, 'tool-calls')).toEqual({
      id: 'msg_1',
      object: 'chat.completion',
      created: MINTED.created,
      model: 'm-1',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: 'one two',
            refusal: null,
            reasoning_content: 'hm\n',
            tool_calls: [
              { id: 'a', type: 'function', function: { name: 'f', arguments: '{"b":9007199254740993}' } },
              { id: 'b', type: 'function', function: { name: 'g', arguments: '{}' } },
            ],
          },
          logprobs: null,
          finish_reason: 'tool_calls',
        },
      ],
      usage: CHAT_USAGE,
    })
  })

  test('the content of an encoded chat reply is null if it has only tool calls, and empty if it has nothing', () => {
    const message = (...parts: ReplyPart[]) => (whole(parts)['choices'] as { message: object }[])[0]?.message
    expect(message({ kind: 'tool-call', id: 'a', name: 'f', input: '{}' })).toMatchObject({ content: null })
    expect(message()).toEqual({ role: 'assistant', content: '', refusal: null })
    expect(message({ kind: 'thinking', text: 'hm' })).toEqual({
      role: 'assistant',
      content: '',
      refusal: null,
      reasoning_content: 'hm',
    })
  })
})

describe('laws of stream encoding', () => {
  const words = fc.string({ unit: anyCharacter })
  const args = fc.oneof(
    fc.json().filter((text) => text !== 'null' && text !== '""'),
    fc.constant('{"a": 9007199254740993, "2":0, "1":0}'),
    fc.constant(''),
  )
  const count = fc.nat(1_000_000)
  const usage = fc
    .record({
      input: count,
      cacheRead: count,
      cacheWrite5m: count,
      cacheWrite1h: count,
      output: count,
      reasoning: count,
    })
    .map((counts) => ({ ...NO_USAGE, ...counts, reasoning: Math.min(counts.reasoning, counts.output) }))
  const part: fc.Arbitrary<ReplyPart> = fc.oneof(
    words.map((text) => ({ kind: 'text', text }) as const),
    fc
      .tuple(words, fc.boolean())
      .map(([text, proven]) => ({ kind: 'thinking', text, ...(proven && { proof: PROOF }) }) as const),
    fc
      .tuple(words, words, args)
      .map(([id, name, input]) => ({ kind: 'tool-call', id, name, input }) as const),
    fc.constant({ kind: 'opaque', protocol: 'messages', value: {} } as const),
  )
  const reply: fc.Arbitrary<Reply> = fc.record({
    id: words,
    model: words,
    parts: fc.array(part, { maxLength: 5 }),
    stop: fc
      .constantFrom<StopReason>('end', 'length', 'tool-calls', 'refusal', 'pause')
      .map((reason) => ({ reason })),
    usage,
  })

  /** The events of a reply, with texts in pieces of one size. */
  function eventsOf({ id, model, parts, stop, usage: used }: Reply, size: number): ReplyEvent[] {
    const pieces = (text: string) => text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []
    const events = parts.flatMap((said, index): ReplyEvent[] => {
      const end: ReplyEvent = { kind: 'part-end', index }
      switch (said.kind) {
        case 'text':
        case 'thinking': {
          const grown = pieces(said.text).map((text): ReplyEvent => ({ kind: said.kind, index, text }))
          const proof = said.kind === 'thinking' ? said.proof : undefined
          const proven: ReplyEvent[] = proof ? [{ kind: 'proof', index, proof }] : []
          return [{ kind: 'part-start', index, part: { kind: said.kind } }, ...grown, ...proven, end]
        }
        case 'search':
          return [{ kind: 'part-start', index, part: said }, end]
        case 'tool-call': {
          const grown = pieces(said.input).map((text): ReplyEvent => ({ kind: 'tool-input', index, text }))
          return [
            { kind: 'part-start', index, part: { kind: 'tool-call', id: said.id, name: said.name } },
            ...grown,
            end,
          ]
        }
        case 'opaque':
          return [{ kind: 'part-start', index, part: said }, end]
      }
    })
    return [{ kind: 'start', id, model, usage: undefined }, ...events, { kind: 'end', stop, usage: used }]
  }

  interface Choice {
    readonly delta: { content?: string; reasoning_content?: string; tool_calls?: [Delta] }
    readonly finish_reason: string | null
  }
  interface Delta {
    readonly index: number
    readonly id?: string
    readonly function: { readonly name?: string; readonly arguments: string }
  }

  /** The message that a client assembles from a stream. */
  function added(stream: string): unknown {
    const chunks = dataOf(stream)
    expect(chunks.pop()).toBe('[DONE]')
    let content = ''
    let thoughts = ''
    let finish: string | null = null
    let used: unknown
    let head: object = {}
    const calls: { id: string; type: 'function'; function: { name: string; arguments: string } }[] = []
    for (const data of chunks) {
      const { choices, usage: counts, ...common } = JSON.parse(data) as { choices: Choice[]; usage?: unknown }
      head = { ...common, object: 'chat.completion' }
      used = counts ?? used
      for (const { delta, finish_reason } of choices) {
        content += delta.content ?? ''
        thoughts += delta.reasoning_content ?? ''
        finish = finish_reason ?? finish
        for (const { index, id, function: piece } of delta.tool_calls ?? []) {
          if (id !== undefined)
            calls.push({ id, type: 'function', function: { name: piece.name ?? '', arguments: '' } })
          expect(index).toBe(calls.length - 1)
          const call = calls[index]
          if (call) call.function.arguments += piece.arguments
        }
      }
    }
    const message = {
      role: 'assistant',
      content: content === '' && calls.length > 0 ? null : content,
      refusal: null,
      ...(thoughts !== '' && { reasoning_content: thoughts }),
      ...(calls.length > 0 && { tool_calls: calls }),
    }
    return { ...head, choices: [{ index: 0, message, logprobs: null, finish_reason: finish }], usage: used }
  }

  test('the chunks of an encoded chat stream have the content of the whole reply', () => {
    fc.assert(
      fc.property(reply, fc.integer({ min: 1, max: 9 }), (said, size) => {
        const events = eventsOf(said, size)
        expect(added(write(events, true))).toEqual(JSON.parse(encodeReply(said, MINTED).toString()))
        expect(foldReply(events)).toEqual(said)
      }),
    )
  })

  test('an encoded chat stream has the same bytes however its events arrive', () => {
    fc.assert(
      fc.property(reply, fc.integer({ min: 1, max: 5 }), (said, size) => {
        const events = eventsOf(said, 3)
        const encoder = new ChatStreamEncoder(MINTED, { includeUsage: true })
        let text = ''
        for (let at = 0; at < events.length; at += size) text += encoder.push(events.slice(at, at + size))
        expect(text + encoder.finalFrames()).toBe(write(events, true))
      }),
    )
  })

  test('the encoded usage of chat has a prompt that includes cached tokens, and can be read back', () => {
    fc.assert(
      fc.property(usage, (used) => {
        const out = writeUsage(used, MINTED) as typeof CHAT_USAGE
        expect(out.total_tokens).toBe(out.prompt_tokens + out.completion_tokens)
        expect(
          out.prompt_tokens -
            out.prompt_tokens_details.cached_tokens -
            out.prompt_tokens_details.cached_creation_tokens,
        ).toBe(used.input)
        expect(readInclusiveUsage(out)).toEqual(used)
      }),
    )
  })
})
