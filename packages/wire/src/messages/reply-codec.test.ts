import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ReportedUsage } from '../reported-usage.ts'
import { NO_USAGE } from '../usage.ts'
import { WireError } from '../wire-error.ts'
import type { ReplyIdentity } from '../codec.ts'
import type { Reply, ReplyEvent, ReplyPart } from '../reply.ts'
import { messagesCodec } from './index.ts'
import { UNSIGNED_THOUGHT_ENVELOPE } from '../signature-envelope.ts'
import { byTier, lawRuns } from '../../../../test/runner/tier.ts'

const MINTED: ReplyIdentity = { created: 1, id: 'abc' }
const USAGE = { ...NO_USAGE, input: 10, cacheRead: 3, cacheWrite5m: 2, cacheWrite1h: 1, output: 5 }
const reply = (fields: Partial<Reply>): Reply => ({
  id: 'msg_1',
  model: 'up',
  parts: [],
  stop: { reason: 'end' },
  usage: USAGE,
  ...fields,
})
const encoded = (fields: Partial<Reply>) =>
  JSON.parse(messagesCodec.encodeReply(reply(fields), MINTED).toString()) as Record<string, unknown>
const decoded = (value: object): Reply => messagesCodec.decodeReply(Buffer.from(JSON.stringify(value)))

/** The sum of a stream's events. */
function folded(events: readonly ReplyEvent[]): Reply | undefined {
  const parts = new Map<number, ReplyPart>()
  let head = { id: '', model: '' }
  const change = (index: number, text: string): void => {
    const part = parts.get(index)
    if (part?.kind === 'tool-call') parts.set(index, { ...part, input: part.input + text })
    else if (part && part.kind !== 'opaque' && part.kind !== 'search')
      parts.set(index, { ...part, text: part.text + text })
  }
  for (const event of events) {
    switch (event.kind) {
      case 'start':
        head = { id: event.id, model: event.model }
        break
      case 'part-start':
        parts.set(event.index, startedPart(event.part))
        break
      case 'text':
      case 'thinking':
      case 'tool-input':
        change(event.index, event.text)
        break
      case 'proof': {
        const part = parts.get(event.index)
        if (part?.kind === 'thinking') parts.set(event.index, { ...part, proof: event.proof })
        break
      }
      case 'end':
        return { ...head, parts: [...parts.values()], stop: event.stop, usage: event.usage }
      case 'part-end':
      case 'citation':
      case 'ping':
      case 'failure':
    }
  }
  return undefined
}

function startedPart(part: Extract<ReplyEvent, { kind: 'part-start' }>['part']): ReplyPart {
  switch (part.kind) {
    case 'text':
    case 'thinking':
      return { kind: part.kind, text: '' }
    case 'tool-call':
      return { ...part, input: '' }
    case 'search':
    case 'opaque':
      return part
  }
}

/** A usage without what the provider stated about how it was served, which is not for clients. */
// What only the account of the call needs: the tier, and the tokens of models that the provider asked.
function unserved(usage: ReportedUsage | undefined): Omit<ReportedUsage, 'served'> | undefined {
  const { served: _, advisors: __, ...counts } = usage ?? {}
  return usage && (counts as ReportedUsage)
}

const by = (bytes: Buffer, size: number): Buffer[] =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size))

function read(stream: string | Buffer, size = 1_000_000): ReplyEvent[] {
  const decoder = messagesCodec.streamDecoder()
  const events = by(Buffer.from(stream), size).flatMap((chunk) => decoder.push(chunk))
  return [...events, ...decoder.end()]
}

/** Joins adjacent pieces of text, so that their boundaries do not matter. */
function joined(events: readonly ReplyEvent[]): ReplyEvent[] {
  const result: ReplyEvent[] = []
  for (const event of events) {
    const last = result.at(-1)
    const same =
      last && 'text' in last && 'text' in event && last.kind === event.kind && last.index === event.index
    if (same) result[result.length - 1] = { ...last, text: last.text + event.text }
    else result.push(event)
  }
  return result
}

function write(events: readonly ReplyEvent[], perPush = 1_000_000): string {
  const encoder = messagesCodec.streamEncoder(MINTED, { includeUsage: true })
  let out = ''
  for (let at = 0; at < events.length; at += perPush) out += encoder.push(events.slice(at, at + perPush))
  return out + encoder.finalFrames()
}

interface Written {
  readonly type: string
  readonly index?: number
  readonly message?: Record<string, unknown>
  readonly content_block?: Record<string, unknown>
  readonly delta?: Record<string, unknown>
  readonly usage?: Record<string, unknown>
}

function eventsOf(stream: string): Written[] {
  return stream
    .split('\n\n')
    .filter((frame) => frame !== '')
    .map((frame) => {
      const [, name, data = ''] = /^event: (\w+)\ndata: ([^\n]*)$/.exec(frame) ?? []
      const event = JSON.parse(data) as Written
      expect(event.type).toBe(name)
      return event
    })
}

/**
 * Checks the order on which every messages client relies: one start, one stop, sequential blocks without
 * gaps.
 */
function checkOrder(stream: string): void {
  const told = eventsOf(stream)
    .filter(({ type }) => type !== 'ping')
    .map(({ type, index }) => (index === undefined ? type : `${type} ${index}`))
  expect(told[0]).toBe('message_start')
  expect(told.slice(-2)).toEqual(['message_delta', 'message_stop'])
  let block = 0
  let isOpen = false
  for (const event of told.slice(1, -2)) {
    if (event === `content_block_start ${block}` && !isOpen) isOpen = true
    else if (event === `content_block_stop ${block}` && isOpen) {
      isOpen = false
      block++
    } else expect(`${event}, ${isOpen ? 'open' : 'shut'}`).toBe(`content_block_delta ${block}, open`)
  }
  expect(isOpen).toBe(false)
}

describe('a whole messages reply', () => {
  test('a whole messages reply is decoded with every kind of block', () => {
    const search = { type: 'web_search_tool_result', tool_use_id: 's', content: [] }
    const read = decoded({
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'up',
      content: [
        { type: 'thinking', thinking: 'hm', signature: 'sig' },
        { type: 'redacted_thinking', data: 'x' },
        { type: 'text', text: 'a', citations: [{}] },
        search,
        { type: 'text', text: 'b' },
        { type: 'tool_use', id: 't', name: 'f', input: { a: 1 } },
      ],
      stop_reason: 'stop_sequence',
      stop_sequence: 'END',
      usage: { input_tokens: 10, output_tokens: 5 },
    })
    expect(read).toEqual({
      id: 'msg_1',
      model: 'up',
      parts: [
        { kind: 'thinking', text: 'hm', proof: { protocol: 'messages', value: 'sig' } },
        { kind: 'opaque', protocol: 'messages', value: { type: 'redacted_thinking', data: 'x' } },
        { kind: 'text', text: 'a' },
        { kind: 'opaque', protocol: 'messages', value: search },
        { kind: 'search', protocol: 'messages', query: '', pages: [], isFailed: false },
        { kind: 'text', text: 'b' },
        { kind: 'tool-call', id: 't', name: 'f', input: '{"a":1}' },
      ],
      stop: { reason: 'stop-sequence', sequence: 'END' },
      usage: { ...NO_USAGE, input: 10, output: 5 },
    })
  })

  test("a whole messages reply keeps the text of a tool call's input when it is decoded and when it is encoded", () => {
    const input = '{ "b": 9007199254740993, "2": 1.0,"1":0}'
    const bytes = Buffer.from(
      `{"id":"msg_1","model":"m","content":[{"type":"tool_use","id":"t","name":"f","input":${input}}]}`,
    )
    const read = messagesCodec.decodeReply(bytes)
    expect(read.parts).toEqual([{ kind: 'tool-call', id: 't', name: 'f', input }])
    expect(messagesCodec.encodeReply(read, MINTED).toString()).toContain(`"input":${input},"caller":`)
  })

  test.each([
    '',
    '<html>',
    '[]',
    '{}',
    '{"content":"x"}',
    '{"type":"error","error":{"message":"m"},"content":[]}',
  ])('a body that is not a messages reply is refused: %s', (text) => {
    expect(() => messagesCodec.decodeReply(Buffer.from(text))).toThrow(/no response|an error/)
  })

  test('a whole messages reply is encoded in the documented order and form', () => {
    expect(
      encoded({
        parts: [
          { kind: 'thinking', text: 'hm' },
          { kind: 'text', text: '' },
          { kind: 'text', text: 'a' },
          { kind: 'tool-call', id: 't', name: 'f', input: '' },
          { kind: 'opaque', protocol: 'chat', value: {} },
        ],
      }),
    ).toEqual({
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'up',
      content: [
        { type: 'thinking', thinking: 'hm', signature: UNSIGNED_THOUGHT_ENVELOPE },
        { type: 'text', text: 'a', citations: null },
        { type: 'tool_use', id: 't', name: 'f', input: {}, caller: { type: 'direct' } },
      ],
      container: null,
      stop_reason: 'tool_use',
      stop_sequence: null,
      stop_details: null,
      usage: {
        input_tokens: 10,
        cache_creation_input_tokens: 3,
        cache_read_input_tokens: 3,
        cache_creation: { ephemeral_5m_input_tokens: 2, ephemeral_1h_input_tokens: 1 },
        output_tokens: 5,
        output_tokens_details: null,
        server_tool_use: null,
        service_tier: null,
        inference_geo: null,
      },
    })
  })

  test("an encoded messages reply has an id in the form of messages, which is created if the upstream's id has another form", () => {
    expect(encoded({ id: 'chatcmpl-1' })['id']).toBe('msg_abc')
    expect(encoded({ id: '' })['id']).toBe('msg_abc')
  })

  test.each(['not json', '[1]', '"x"', '{"a":'])(
    'the input of a tool call that is not an object is encoded as an empty object of messages: %s',
    (input) => {
      const call = { kind: 'tool-call', id: 't', name: 'f', input } as const
      const reply = encoded({ parts: [call], stop: { reason: 'length' } })
      expect(reply['content']).toMatchObject([{ type: 'tool_use', id: 't', name: 'f', input: {} }])
      expect(reply['stop_reason']).toBe('max_tokens')
    },
  )

  test.each(['', 'null', ' null\n', '""'])(
    'the missing input of a tool call is encoded as an empty object of messages: %j',
    (input) => {
      expect(encoded({ parts: [{ kind: 'tool-call', id: 't', name: 'f', input }] })['content']).toMatchObject(
        [{ type: 'tool_use', input: {} }],
      )
    },
  )

  test.each([
    ['end_turn', 'end'],
    ['max_tokens', 'length'],
    ['stop_sequence', 'stop-sequence'],
    ['tool_use', 'tool-calls'],
    ['refusal', 'refusal'],
    ['pause_turn', 'pause'],
  ] as const)('the stop reason %s of messages is decoded as %s, and encoded back', (wire, reason) => {
    expect(decoded({ content: [], stop_reason: wire }).stop).toEqual({ reason })
    expect(encoded({ stop: { reason } })['stop_reason']).toBe(wire)
  })

  test('a messages reply with null as its error is read as a reply', () => {
    for (const error of [null, '']) expect(decoded({ content: [], error }).parts).toEqual([])
    for (const error of [{}, 'busy']) expect(() => decoded({ content: [], error })).toThrow(WireError)
  })

  test('an unknown stop reason of messages is read as a normal end, and marked as unknown', () => {
    expect(decoded({ content: [], stop_reason: 'unheard_of' }).stop).toEqual({
      reason: 'end',
      isUnknown: true,
    })
    expect(decoded({ content: [], stop_reason: 'model_context_window_exceeded' }).stop).toEqual({
      reason: 'length',
    })
    expect(encoded({ stop: { reason: 'stop-sequence', sequence: 'X' } })).toMatchObject({
      stop_sequence: 'X',
    })
  })
})

const START =
  'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","model":"up","content":[],"usage":{"input_tokens":10,"output_tokens":1}}}\n\n'
const data = (event: object): string => `data: ${JSON.stringify(event)}\n\n`
const begin = (index: number, content_block: object): string =>
  data({ type: 'content_block_start', index, content_block })
const delta = (index: number, piece: object): string =>
  data({ type: 'content_block_delta', index, delta: piece })
const text = (index: number, value: string): string => delta(index, { type: 'text_delta', text: value })
const input = (index: number, value: string): string =>
  delta(index, { type: 'input_json_delta', partial_json: value })
const END =
  data({
    type: 'message_delta',
    delta: { stop_reason: 'end_turn', stop_sequence: null },
    usage: { output_tokens: 5 },
  }) + data({ type: 'message_stop' })
const ENDED = { kind: 'end', stop: { reason: 'end' }, usage: { ...NO_USAGE, input: 10, output: 5 } }
const failureOf = (stream: string): ReplyEvent | undefined =>
  read(stream).find(({ kind }) => kind === 'failure')

describe('reading a messages stream', () => {
  test('a messages stream is decoded with its blocks, their deltas, pings and the end', () => {
    const stream =
      START +
      begin(0, { type: 'thinking', thinking: '', signature: '' }) +
      data({ type: 'ping' }) +
      delta(0, { type: 'thinking_delta', thinking: 'hm' }) +
      delta(0, { type: 'signature_delta', signature: 'sig' }) +
      data({ type: 'content_block_stop', index: 0 }) +
      begin(1, { type: 'text', text: '' }) +
      text(1, 'a') +
      delta(1, { type: 'citations_delta', citation: {} }) +
      data({ type: 'content_block_stop', index: 1 }) +
      begin(2, { type: 'tool_use', id: 't', name: 'f', input: {} }) +
      input(2, '') +
      input(2, '{"a":9007199254740993}') +
      data({ type: 'content_block_stop', index: 2 }) +
      END
    expect(read(stream)).toEqual([
      { kind: 'start', id: 'msg_1', model: 'up', usage: { ...NO_USAGE, input: 10, output: 1 } },
      { kind: 'part-start', index: 0, part: { kind: 'thinking' } },
      { kind: 'ping' },
      { kind: 'thinking', index: 0, text: 'hm' },
      { kind: 'proof', index: 0, proof: { protocol: 'messages', value: 'sig' } },
      { kind: 'part-end', index: 0 },
      { kind: 'part-start', index: 1, part: { kind: 'text' } },
      { kind: 'text', index: 1, text: 'a' },
      { kind: 'part-end', index: 1 },
      { kind: 'part-start', index: 2, part: { kind: 'tool-call', id: 't', name: 'f' } },
      { kind: 'tool-input', index: 2, text: '{"a":9007199254740993}' },
      { kind: 'part-end', index: 2 },
      ENDED,
    ])
  })

  test('a block of a messages stream that only messages knows is decoded when it is complete', () => {
    const stream =
      START +
      begin(0, { type: 'server_tool_use', id: 's', name: 'web_search', input: {} }) +
      input(0, '{"query":') +
      input(0, '"x"}') +
      data({ type: 'content_block_stop', index: 0 }) +
      END
    expect(read(stream)[1]).toEqual({
      kind: 'part-start',
      index: 0,
      part: {
        kind: 'opaque',
        protocol: 'messages',
        value: { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'x' } },
      },
    })
  })

  test('a tool call of a messages stream that begins with its input keeps it, unless more input follows', () => {
    const whole = '{"type":"tool_use","id":"t","name":"f","input":{"b":9007199254740993,"1":0}}'
    const started = `data: {"type":"content_block_start","index":0,"content_block":${whole}}\n\n`
    const inputs = (stream: string) =>
      read(stream).flatMap((event) => (event.kind === 'tool-input' ? event.text : []))
    expect(inputs(START + started + END)).toEqual(['{"b":9007199254740993,"1":0}'])
    expect(inputs(START + started + input(0, '{"c":1}') + END)).toEqual(['{"c":1}'])
  })

  test('a messages stream whose first event has the complete message is decoded completely', () => {
    const message = {
      id: 'msg_1',
      content: [
        { type: 'text', text: 'all' },
        { type: 'tool_use', id: 't', name: 'f', input: { a: 1 } },
      ],
      stop_reason: 'tool_use',
      usage: { input_tokens: 1, output_tokens: 2 },
    }
    expect(
      folded(read(data({ type: 'message_start', message }) + data({ type: 'message_stop' }))),
    ).toMatchObject({
      parts: [{ text: 'all' }, { input: '{"a":1}' }],
      stop: { reason: 'tool-calls' },
      usage: { output: 2 },
    })
  })

  test('a text delta of a messages stream without an open block begins a new block', () => {
    const stop = data({ type: 'content_block_stop', index: 0 })
    const stream =
      START +
      text(0, 'a') +
      stop +
      stop +
      text(0, 'b') +
      delta(7, { type: 'thinking_delta', thinking: 'c' }) +
      END
    expect(folded(read(stream))?.parts).toEqual([
      { kind: 'text', text: 'a' },
      { kind: 'text', text: 'b' },
      { kind: 'thinking', text: 'c' },
    ])
  })

  test('blocks of a messages stream that are out of order or interleaved become parts in the order in which they begin', () => {
    const stream =
      START +
      begin(5, { type: 'tool_use', id: 'x', name: 'f', input: {} }) +
      begin(2, { type: 'tool_use', id: 'y', name: 'g', input: {} }) +
      input(5, '{"a"') +
      input(2, '{}') +
      input(5, ':1}') +
      END
    expect(folded(read(stream))?.parts).toEqual([
      { kind: 'tool-call', id: 'x', name: 'f', input: '{"a":1}' },
      { kind: 'tool-call', id: 'y', name: 'g', input: '{}' },
    ])
  })

  test.each([
    ['a message_start of another message', START + START.replace('"msg_1"', '"msg_2"')],
    ['input of a call that was not begun', START + input(0, '{}')],
    ['message_stop alone', data({ type: 'message_stop' })],
    ['an error that is not JSON', 'event: error\ndata: busy\n\n'],
  ])('a messages stream is decoded as a failure, and nothing follows, after %s', (_, stream) => {
    const events = read(stream + text(0, 'late') + END)
    expect(events.at(-1)).toMatchObject({ kind: 'failure', type: 'api_error' })
  })

  test('an error event of a messages stream is decoded as a failure of the upstream', () => {
    const error = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }
    expect(failureOf(START + data(error))).toMatchObject({
      kind: 'failure',
      type: 'overloaded_error',
      message: 'Overloaded',
    })
  })

  test.each([
    [
      'of a type of its own',
      'event: error\ndata: {"type":"overloaded_error","message":"busy"}\n\n',
      'overloaded_error',
    ],
    [
      'of a type that is no error elsewhere',
      'event: error\ndata: {"type":"content_block_stop","error":{"message":"busy"}}\n\n',
      'api_error',
    ],
    ['of no type', 'event: error\ndata: {"type":"error","message":"busy"}\n\n', 'api_error'],
    [
      'without a type or a name',
      data({ error: { type: 'rate_limit_error', message: 'busy' } }),
      'rate_limit_error',
    ],
    ['that is a text', data({ error: 'busy' }), 'api_error'],
  ])(
    'an error event %s of a messages stream is decoded as a failure with its type and message',
    (_kind, error, type) => {
      expect(failureOf(error)).toMatchObject({ kind: 'failure', type, message: 'busy' })
      expect(read(START + text(0, 'a') + error + END).at(-1)).toMatchObject({
        kind: 'failure',
        type,
        message: 'busy',
      })
    },
  )

  test('an event of a messages stream whose error is null is not decoded as a failure', () => {
    expect(failureOf(START + data({ error: null }) + data({ type: 'odd', error: '' }) + END)).toBeUndefined()
  })

  test('unknown events, and invalid frames and values, are ignored in a messages stream', () => {
    const odd = [
      ': hi\n\n',
      'data: [1]\n\n',
      'data: {\n\n',
      data({ type: 'odd' }),
      data({ type: 'content_block_delta' }),
      data({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 5 } }),
      data({ type: 'content_block_stop', index: 'x' }),
      data({ type: 'content_block_start', index: 0 }),
    ]
    expect(
      folded(read(START + odd.join('') + text(1, 'a') + END))?.parts.filter(({ kind }) => kind !== 'opaque'),
    ).toEqual([{ kind: 'text', text: 'a' }])
  })

  test('a message that begins twice in a stream is decoded as one message, and its usage counts once', () => {
    const again = START.replace('"output_tokens":', '"output_tokens":7')
    expect(read(START + again + text(0, 'a') + END)).toEqual(read(START + text(0, 'a') + END))
  })

  test('a message that begins twice in a stream is decoded with the prompt tokens of its second beginning', () => {
    const none = START.replace('"input_tokens":10', '"input_tokens":0')
    const told = START.replace('"input_tokens":10', '"input_tokens":1000')
    for (const stream of [
      none + told + text(0, 'a') + END,
      none + END.replace('{"type":"message_stop"}', '{"type":"ping"}') + told,
    ])
      expect(folded(read(stream))?.usage).toMatchObject({ input: 1000, output: 5 })
  })

  test('a streamed message whose end reports no output keeps the prompt tokens of its beginning', () => {
    for (const usage of [null, {}, { output_tokens: null }, { output_tokens: -1 }]) {
      const end = data({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage })
      expect(folded(read(START + text(0, 'a') + end))?.usage).toEqual({
        ...NO_USAGE,
        input: 10,
        outputIsUnknown: true,
      })
    }
  })

  test('a messages stream is decoded as complete once it has a stop reason, even if message_stop is missing, and not before', () => {
    const whole = Buffer.from(START + begin(0, { type: 'text', text: '' }) + text(0, 'a') + END)
    const reason = whole.indexOf('\n\n', whole.indexOf('message_delta')) + 2
    for (let at = 0; at < reason; at++) {
      const events = read(whole.subarray(0, at))
      expect(events.some(({ kind }) => kind === 'end')).toBe(false)
      expect(write(events)).not.toContain('message_stop')
    }
    for (let at = reason; at <= whole.length; at++) expect(read(whole.subarray(0, at)).at(-1)).toEqual(ENDED)
  })

  test('a messages stream that has no stop reason is complete with message_stop', () => {
    const events = read(START + text(0, 'a') + data({ type: 'message_stop' }))
    expect(events.at(-1)).toMatchObject({ kind: 'end', stop: { reason: 'end' } })
  })

  test('the usage of a messages stream is known at any time, also after an error event that states it', () => {
    const decoder = messagesCodec.streamDecoder()
    decoder.push(Buffer.from(START + text(0, 'a')))
    expect(decoder.usage).toMatchObject({ input: 10, output: 1 })
    const usage = { input_tokens: 10, output_tokens: 40 }
    decoder.push(Buffer.from(data({ type: 'error', error: { type: 'api_error', message: 'x' }, usage })))
    expect(decoder.usage).toMatchObject({ input: 10, output: 40 })
    const other = messagesCodec.streamDecoder()
    other.push(Buffer.from(START + data({ error: { message: 'x', usage } })))
    expect(other.usage).toMatchObject({ input: 10, output: 40 })
  })
})

describe('writing a messages stream', () => {
  const started = (index: number, kind: 'text' | 'thinking'): ReplyEvent => ({
    kind: 'part-start',
    index,
    part: { kind },
  })
  const called = (index: number, id: string): ReplyEvent => ({
    kind: 'part-start',
    index,
    part: { kind: 'tool-call', id, name: 'f' },
  })
  const grew = (index: number, piece: string): ReplyEvent => ({ kind: 'tool-input', index, text: piece })
  const said = (index: number, piece: string): ReplyEvent => ({ kind: 'text', index, text: piece })
  const over = (index: number): ReplyEvent => ({ kind: 'part-end', index })
  const STARTED: ReplyEvent = { kind: 'start', id: 'chatcmpl-1', model: 'up', usage: undefined }
  const FINISHED: ReplyEvent = { kind: 'end', stop: { reason: 'end' }, usage: USAGE }

  test('a messages stream is encoded with the documented events', () => {
    const stream = write([
      STARTED,
      { kind: 'ping' },
      started(0, 'thinking'),
      { kind: 'thinking', index: 0, text: 'hm' },
      over(0),
      started(1, 'text'),
      said(1, 'a "b"\n'),
      over(1),
      called(2, 't'),
      grew(2, '{"a"'),
      grew(2, ':1}'),
      over(2),
      FINISHED,
    ])
    checkOrder(stream)
    expect(eventsOf(stream)).toEqual([
      {
        type: 'message_start',
        message: {
          id: 'msg_abc',
          type: 'message',
          role: 'assistant',
          model: 'up',
          content: [],
          container: null,
          stop_reason: null,
          stop_sequence: null,
          stop_details: null,
          usage: {
            input_tokens: 0,
            cache_creation_input_tokens: 0,
            cache_read_input_tokens: 0,
            cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
            output_tokens: 0,
            output_tokens_details: null,
            server_tool_use: null,
            service_tier: null,
            inference_geo: null,
          },
        },
      },
      { type: 'ping' },
      {
        type: 'content_block_start',
        index: 0,
        content_block: { type: 'thinking', thinking: '', signature: '' },
      },
      { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'hm' } },
      {
        type: 'content_block_delta',
        index: 0,
        delta: { type: 'signature_delta', signature: UNSIGNED_THOUGHT_ENVELOPE },
      },
      { type: 'content_block_stop', index: 0 },
      { type: 'content_block_start', index: 1, content_block: { type: 'text', text: '', citations: null } },
      { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'a "b"\n' } },
      { type: 'content_block_stop', index: 1 },
      {
        type: 'content_block_start',
        index: 2,
        content_block: { type: 'tool_use', id: 't', name: 'f', input: {}, caller: { type: 'direct' } },
      },
      { type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: '{"a"' } },
      { type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: ':1}' } },
      { type: 'content_block_stop', index: 2 },
      {
        type: 'message_delta',
        delta: { container: null, stop_reason: 'tool_use', stop_sequence: null, stop_details: null },
        usage: {
          input_tokens: 10,
          cache_creation_input_tokens: 3,
          cache_read_input_tokens: 3,
          cache_creation: { ephemeral_5m_input_tokens: 2, ephemeral_1h_input_tokens: 1 },
          output_tokens: 5,
          output_tokens_details: null,
          server_tool_use: null,
          service_tier: null,
          inference_geo: null,
        },
      },
      { type: 'message_stop' },
    ])
  })

  test('an encoded messages stream sends deltas of the open block at once, and holds back those of a later block until it closes', () => {
    const encoder = messagesCodec.streamEncoder(MINTED, { includeUsage: true })
    encoder.push([STARTED, called(0, 'x')])
    expect(encoder.push([grew(0, '{"a"')])).toContain('input_json_delta')
    expect(encoder.push([called(1, 'y'), grew(1, '{"b"')])).toBe('')
    expect(encoder.push([grew(0, ':1}')])).toContain(':1}')
    expect(encoder.push([grew(1, ':2}'), called(2, 'z'), over(1)])).toBe('')
    const rest = encoder.push([over(0)])
    expect(
      eventsOf(rest).map(({ type, index, delta: piece }) => [type, index, piece?.['partial_json']]),
    ).toEqual([
      ['content_block_stop', 0, undefined],
      ['content_block_start', 1, undefined],
      ['content_block_delta', 1, '{"b":2}'],
      ['content_block_stop', 1, undefined],
      ['content_block_start', 2, undefined],
    ])
    expect(encoder.finalFrames()).toBe('')
    expect(encoder.push([grew(2, '{}')])).toContain('"index":2')
    expect(eventsOf(encoder.push([FINISHED])).map(({ type }) => type)).toEqual(['content_block_stop'])
    const charged = { ...NO_USAGE, input: 12, output: 34 }
    expect(eventsOf(encoder.finalFrames(charged))).toMatchObject([
      { type: 'message_delta', usage: { input_tokens: 12, output_tokens: 34 } },
      { type: 'message_stop' },
    ])
  })

  test('a stream without content is encoded as a message without blocks', () => {
    for (const events of [
      [STARTED, FINISHED],
      [FINISHED],
      [STARTED, started(0, 'text'), over(0), FINISHED],
    ]) {
      const stream = write(events)
      checkOrder(stream)
      expect(stream).not.toContain('content_block')
    }
  })

  test('a failure is encoded as an error event of messages, and a failed stream has no final event', () => {
    const encoder = messagesCodec.streamEncoder(MINTED, { includeUsage: true })
    encoder.push([STARTED, started(0, 'text'), said(0, 'a')])
    expect(encoder.push([{ kind: 'failure', type: 'x', message: 'y' }])).toBe('')
    expect(encoder.failureFrame({ type: 'api_error', code: 'upstream_error', message: 'm' })).toBe(
      'event: error\ndata: {"type":"error","error":{"type":"gateway_error","message":"m","code":"upstream_error"}}\n\n',
    )
    expect(encoder.finalFrames()).toBe('')
  })

  test('blocks and signatures of other dialects are left out of an encoded messages stream', () => {
    const stream = write([
      STARTED,
      { kind: 'part-start', index: 0, part: { kind: 'opaque', protocol: 'chat', value: { odd: 1 } } },
      over(0),
      started(1, 'thinking'),
      { kind: 'proof', index: 1, proof: { protocol: 'chat', value: 'foreign' } },
      over(1),
      FINISHED,
    ])
    checkOrder(stream)
    expect(stream).not.toMatch(/odd|foreign/)
  })
})

describe('any messages reply', () => {
  const word = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 })
  const part = fc.oneof(
    word.map((value): ReplyPart => ({ kind: 'text', text: value })),
    word.map(
      (value): ReplyPart => ({
        kind: 'thinking',
        text: value,
        proof: { protocol: 'messages', value: 'sig' },
      }),
    ),
    fc
      .constantFrom('{}', '{"b":9007199254740993,"2":1.0,"1":-0}', '{ "a" : "\\u00e9" }')
      .map((value): ReplyPart => ({ kind: 'tool-call', id: 'toolu_1', name: 'f', input: value })),
    word.map(
      (value): ReplyPart => ({
        kind: 'opaque',
        protocol: 'messages',
        value: { type: 'new_block', data: value, input: { a: [1] } },
      }),
    ),
  )
  const stop = fc.constantFrom<Reply['stop']>(
    { reason: 'length' },
    { reason: 'refusal' },
    { reason: 'pause' },
    { reason: 'tool-calls' },
    { reason: 'stop-sequence', sequence: 'X' },
  )
  const count = fc.nat(100_000)
  const usage = fc
    .record({
      input: count,
      cacheRead: count,
      cacheWrite5m: count,
      cacheWrite1h: count,
      output: count,
      webSearches: fc.nat(3),
    })
    .map((counts) => ({ ...NO_USAGE, ...counts }))
  const answer = fc
    .record({ parts: fc.array(part, { maxLength: 6 }), stop, usage })
    .map((fields) => reply(fields))

  /** Events of a reply; its parts are interleaved if `interleaved`. */
  function eventsFor(whole: Reply, size: number, interleaved: boolean): ReplyEvent[] {
    const each = whole.parts.map((value, index): ReplyEvent[] => {
      const started: ReplyEvent = {
        kind: 'part-start',
        index,
        part:
          value.kind === 'tool-call'
            ? { kind: 'tool-call', id: value.id, name: value.name }
            : value.kind === 'opaque' || value.kind === 'search'
              ? value
              : { kind: value.kind },
      }
      const proof: ReplyEvent[] =
        value.kind === 'thinking' && value.proof ? [{ kind: 'proof', index, proof: value.proof }] : []
      return [started, ...piecesOf(value, index, size), ...proof, { kind: 'part-end', index }]
    })
    const dealt: ReplyEvent[] = []
    const longest = Math.max(0, ...each.map(({ length }) => length))
    if (!interleaved) dealt.push(...each.flat())
    else for (let at = 0; at < longest; at++) dealt.push(...each.flatMap((events) => events[at] ?? []))
    return [
      { kind: 'start', id: whole.id, model: whole.model, usage: undefined },
      ...dealt,
      { kind: 'end', stop: whole.stop, usage: whole.usage },
    ]
  }

  function piecesOf(value: ReplyPart, index: number, size: number): ReplyEvent[] {
    if (value.kind === 'opaque' || value.kind === 'search') return []
    const whole = Array.from(value.kind === 'tool-call' ? value.input : value.text)
    const kind = value.kind === 'tool-call' ? 'tool-input' : value.kind
    return Array.from({ length: Math.ceil(whole.length / size) }, (_, i) => ({
      kind,
      index,
      text: whole.slice(i * size, (i + 1) * size).join(''),
    }))
  }

  test('any messages reply is unchanged after it is encoded and decoded', () => {
    fc.assert(
      fc.property(answer, (whole) => {
        expect(messagesCodec.decodeReply(messagesCodec.encodeReply(whole, MINTED))).toEqual(whole)
      }),
    )
  })

  test('any messages reply has the same content as a stream, in any pieces, interleaved or not, and cut anywhere', () => {
    fc.assert(
      fc.property(
        answer,
        fc.integer({ min: 1, max: 20 }),
        fc.boolean(),
        fc.nat(200),
        fc.integer({ min: 1, max: 9 }),
        (whole, size, interleaved, cut, perPush) => {
          const stream = write(eventsFor(whole, size, interleaved), perPush)
          checkOrder(stream)
          expect(folded(read(stream, cut + 1))).toEqual(whole)
          expect(joined(read(stream, cut + 1))).toEqual(joined(read(stream)))
        },
      ),
      { numRuns: lawRuns(300) },
    )
  })
})

describe('recorded traffic', () => {
  const folder = process.env['RECORDINGS']
  const all = folder ? readdirSync(join(folder, 'messages')).filter((name) => !name.startsWith('error-')) : []
  const streams = all.filter((name) => name.endsWith('.sse'))
  const replies = all.filter((name) => name.endsWith('.json'))

  test(`${replies.length} recorded messages replies keep their content, stop reason and usage when decoded and encoded`, () => {
    for (const name of replies) {
      const bytes = readFileSync(join(folder ?? '', 'messages', name))
      const read = messagesCodec.decodeReply(bytes)
      const again = messagesCodec.decodeReply(messagesCodec.encodeReply(read, MINTED))
      expect(again, name).toEqual({ ...read, id: again.id, usage: unserved(read.usage) })
      const { content, stop_reason: reason } = JSON.parse(bytes.toString()) as {
        content: { type: string }[]
        stop_reason: string
      }
      // A search is an additional part, next to its blocks.
      const blocks = read.parts.filter(({ kind }) => kind !== 'search')
      expect(blocks, name).toHaveLength(content.length)
      expect(JSON.parse(messagesCodec.encodeReply(read, MINTED).toString()), name).toMatchObject({
        stop_reason: reason,
      })
    }
    expect(replies.length).toBeGreaterThanOrEqual(0)
  })

  test(`${streams.length} recorded messages streams are decoded the same however divided, and encoded with the same content`, () => {
    for (const name of streams) {
      const bytes = readFileSync(join(folder ?? '', 'messages', name))
      const events = read(bytes)
      expect(events.at(-1)?.kind, name).toBe('end')
      for (const size of byTier([1, 100], [1, 3, 100, 4096])) expect(read(bytes, size), name).toEqual(events)
      const stream = write(events)
      checkOrder(stream)
      const whole = folded(events)
      const parts = whole?.parts.filter((value) => value.kind !== 'text' || value.text !== '')
      expect(folded(read(stream)), name).toEqual({ ...whole, parts, usage: unserved(whole?.usage) })
    }
    expect(streams.length).toBeGreaterThanOrEqual(0)
  })
})
