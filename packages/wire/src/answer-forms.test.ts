import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type AnswerForms, parseEvents, type Json } from './answer-forms.ts'
import { ANSWER_FORMS } from './answer-forms-by-name.ts'
import { chatAnswerForms, chatCodec, completionsAnswerForms, withUsageChunk } from './chat/index.ts'
import { converseAnswerForms } from './converse/index.ts'
import { geminiAnswerForms, geminiCodec } from './gemini/index.ts'
import { messagesAnswerForms, messagesCodec } from './messages/index.ts'
import { combineChoices, type ReplyPart } from './reply.ts'
import { responsesAnswerForms, responsesCodec } from './responses/index.ts'

const WITH_USAGE = { includeUsage: true }
const CODECS = { chat: chatCodec, messages: messagesCodec, responses: responsesCodec, gemini: geminiCodec }
const folder = process.env['RECORDINGS']

const FORMS: readonly (readonly [string, AnswerForms])[] = [
  ['chat', chatAnswerForms],
  ['messages', messagesAnswerForms],
  ['responses', responsesAnswerForms],
  ['gemini', geminiAnswerForms],
]

function recordings(protocol: string, ending: string): (readonly [string, string])[] {
  if (folder === undefined) return []
  return readdirSync(join(folder, protocol))
    .filter((name) => name.endsWith(ending) && !name.startsWith('error-'))
    .map((name) => [name, readFileSync(join(folder, protocol, name), 'utf8')] as const)
}

describe.skipIf(folder === undefined)('recorded answers of providers', () => {
  for (const [protocol, form] of FORMS) {
    test(`a whole ${protocol} answer is the same after it was made into a stream and assembled again`, () => {
      let count = 0
      for (const [name, text] of recordings(protocol, '.json')) {
        const whole = JSON.parse(text) as Json
        if (!form.isComplete(whole)) continue
        count++
        const expected = withoutQuirks(whole)
        expect([name, form.whole(parseEvents(form.frames(whole, WITH_USAGE)))]).toEqual([name, expected])
      }
      expect(count).toBeGreaterThan(3)
    })

    test(`a streamed ${protocol} answer is the same after it was assembled to a whole answer and streamed again`, () => {
      let count = 0
      for (const [name, stream] of recordings(protocol, '.sse')) {
        const whole = form.whole(parseEvents(stream))
        if (!whole || !form.isComplete(whole)) continue
        count++
        expect([name, form.whole(parseEvents(form.frames(whole, WITH_USAGE)))]).toEqual([name, whole])
      }
      expect(count).toBeGreaterThan(3)
    })
  }
})

describe.skipIf(folder === undefined)('recorded streams, assembled', () => {
  for (const protocol of ['chat', 'messages', 'responses', 'gemini'] as const) {
    const codec = CODECS[protocol]
    test(`a ${protocol} answer that was assembled from a stream says what the stream said`, () => {
      let count = 0
      for (const [name, stream] of recordings(protocol, '.sse')) {
        // The deltas of its text were shortened by hand.
        if (name === 'openai--openai-shell-container-1.sse') continue
        const decoder = codec.streamDecoder()
        const events = [...decoder.push(Buffer.from(stream)), ...decoder.end()]
        const last = events.at(-1)
        if (last?.kind !== 'end') continue
        count++
        const whole = codec.decodeReply(
          Buffer.from(JSON.stringify(ANSWER_FORMS[protocol].whole(parseEvents(stream)))),
        )
        const said = { parts: combineChoices(events)[0], usage: last.usage, reason: last.stop.reason }
        expect([name, { ...whole, parts: readable(whole.parts), reason: whole.stop.reason }]).toMatchObject([
          name,
          { ...said, parts: readable(said.parts) },
        ])
      }
      expect(count).toBeGreaterThan(3)
    })
  }
})

/** Parts without what no client can tell apart: empty texts, and the input `{}` of a call that has no parameters. */
function readable(parts: readonly ReplyPart[] = []): object[] {
  return parts
    .filter((part) => !('text' in part) || part.text !== '')
    .map((part) => (part.kind === 'tool-call' ? { ...part, input: JSON.parse(part.input || '{}') } : part))
}

/** Some providers number the calls of whole answers as those of streams, some have deltas beside them, and some leave out empty contents. */
function withoutQuirks(whole: Json): Json {
  const copy = structuredClone(whole) as {
    choices?: { delta?: unknown; message?: { content?: unknown; tool_calls?: { index?: number }[] | null } }[]
  }
  for (const choice of copy.choices ?? []) {
    delete choice.delta
    const { message } = choice
    if (message) message.content ??= null
    for (const call of message?.tool_calls ?? []) delete call.index
  }
  return copy
}

function sse(...events: readonly object[]): string {
  return events
    .map(
      (data) => ('type' in data ? `event: ${String(data.type)}\n` : '') + `data: ${JSON.stringify(data)}\n\n`,
    )
    .join('')
}

describe('chat', () => {
  const chunk = (choice: object, more: object = {}): object => ({
    id: 'c1',
    object: 'chat.completion.chunk',
    created: 7,
    model: 'm',
    ...more,
    choices: [{ index: 0, finish_reason: null, ...choice }],
  })
  const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
  const usageChunk = { id: 'c1', object: 'chat.completion.chunk', created: 7, model: 'm', choices: [], usage }

  test('the chunks of a chat stream are assembled to one chat completion', () => {
    const stream = sse(
      chunk({ delta: { role: 'assistant', content: '' } }),
      chunk({ delta: { content: 'Hel' }, logprobs: { content: [{ token: 'Hel' }] } }),
      chunk({ delta: { content: 'lo' }, logprobs: { content: [{ token: 'lo' }] } }),
      chunk({
        delta: {
          tool_calls: [{ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '{' } }],
        },
      }),
      chunk({ delta: { tool_calls: [{ index: 0, function: { arguments: '}' } }] } }),
      chunk({ delta: {}, finish_reason: 'tool_calls' }),
      usageChunk,
    )
    expect(chatAnswerForms.whole(parseEvents(`${stream}data: [DONE]\n\n`))).toEqual({
      id: 'c1',
      object: 'chat.completion',
      created: 7,
      model: 'm',
      usage,
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: 'Hello',
            tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }],
          },
          logprobs: { content: [{ token: 'Hel' }, { token: 'lo' }] },
          finish_reason: 'tool_calls',
        },
      ],
    })
  })

  test('what chunks of a choice repeat counts once: its finish reason, its filters, and a message of its deltas', () => {
    const content_filter_results = { hate: { filtered: false, severity: 'safe' } }
    const end = { finish_reason: 'error', native_finish_reason: 'failed', content_filter_results }
    const stream = sse(
      chunk({ delta: { content: 'Hel' }, message: { content: 'Hel' }, content_filter_results }),
      chunk({ delta: { content: 'lo' }, message: { content: 'Hello' }, ...end }),
      chunk({ message: { role: 'assistant', content: 'Hello' }, ...end }),
    )
    expect(chatAnswerForms.whole(parseEvents(stream))?.['choices']).toEqual([
      { index: 0, message: { role: 'assistant', content: 'Hello' }, ...end },
    ])
    const texts = sse(chunk({ text: 'a', finish_reason: 'stop' }), chunk({ text: '', finish_reason: 'stop' }))
    expect(completionsAnswerForms.whole(parseEvents(texts))?.['choices']).toMatchObject([
      { text: 'a', finish_reason: 'stop' },
    ])
  })

  test('a chat stream of one message instead of deltas is assembled to it', () => {
    const message = { role: 'assistant', content: 'Hello' }
    const stream = sse(chunk({ delta: { role: 'assistant' } }), chunk({ message, finish_reason: 'stop' }))
    expect(chatAnswerForms.whole(parseEvents(stream))?.['choices']).toEqual([
      { index: 0, message, finish_reason: 'stop' },
    ])
  })

  test.each(['length', 'content_filter', null, 'eos'])(
    'a chat completion with the finish reason %j does not count as complete',
    (reason) => {
      const whole = { choices: [{ index: 0, message: { content: 'a' }, finish_reason: reason }] }
      expect(chatAnswerForms.isComplete(whole)).toBe(false)
      expect(chatAnswerForms.isComplete({ choices: [{ ...whole.choices[0], finish_reason: 'stop' }] })).toBe(
        true,
      )
    },
  )

  test('an answer with a refusal, an error or a truncated choice does not count as complete', () => {
    const stop = { message: { content: 'a' }, finish_reason: 'stop' }
    expect(chatAnswerForms.isComplete({ choices: [{ ...stop, message: { refusal: 'No.' } }] })).toBe(false)
    expect(chatAnswerForms.isComplete({ choices: [stop], error: { message: 'x' } })).toBe(false)
    expect(chatAnswerForms.isComplete({ choices: [stop, { ...stop, finish_reason: 'length' }] })).toBe(false)
    expect(chatAnswerForms.isComplete({ choices: [] })).toBe(false)
    expect(
      chatAnswerForms.whole(parseEvents(sse(chunk({ delta: {} }), { error: { message: 'x' } }))),
    ).toBeUndefined()
  })

  test.each(['\n\n', '\r\n\r\n'])(
    'a replayed stream has a usage chunk only if the request asked for usage',
    (end) => {
      const frames = [
        chunk({ delta: { content: 'a' } }),
        chunk({ delta: {}, finish_reason: 'stop' }),
        usageChunk,
      ]
      const [one, two, three] = frames.map((frame) => `data: ${JSON.stringify(frame)}${end}`)
      const done = `data: [DONE]${end}`
      const plain = `${one}${two}${done}`
      const full = `${one}${two}${three}${done}`
      expect(withUsageChunk(full, false, undefined)).toBe(plain)
      expect(withUsageChunk(plain, false, usage)).toBe(plain)
      expect(withUsageChunk(full, true, undefined)).toBe(full)
      expect(withUsageChunk(plain, true, usage)).toBe(
        `${one}${two}data: ${JSON.stringify(usageChunk)}\n\n${done}`,
      )
    },
  )

  test('a legacy completion is split into a stream and assembled from one like a chat completion', () => {
    const whole = {
      id: 'c1',
      object: 'text_completion',
      created: 7,
      model: 'm',
      usage,
      choices: [
        { text: 'Hello', index: 0, logprobs: null, finish_reason: 'stop' },
        { text: 'Hi', index: 1, logprobs: null, finish_reason: 'stop' },
      ],
    }
    expect(
      completionsAnswerForms.whole(parseEvents(completionsAnswerForms.frames(whole, WITH_USAGE))),
    ).toEqual(whole)
    expect(completionsAnswerForms.frames(whole, { includeUsage: false })).not.toContain('usage')
    const pieces = sse(
      {
        ...whole,
        usage: undefined,
        choices: [{ text: 'Hel', index: 0, logprobs: null, finish_reason: null }],
      },
      {
        ...whole,
        usage: undefined,
        choices: [{ text: 'lo', index: 0, logprobs: null, finish_reason: 'stop' }],
      },
    )
    expect(completionsAnswerForms.whole(parseEvents(pieces))?.['choices']).toEqual([whole.choices[0]])
  })
})

describe('messages', () => {
  const started = {
    type: 'message_start',
    message: { id: 'm1', content: [], usage: { input_tokens: 9, output_tokens: 1 } },
  }
  const ended = { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 7 } }
  const block = (content_block: object, ...deltas: object[]): object[] => [
    { type: 'content_block_start', index: 0, content_block },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index: 0, delta })),
    { type: 'content_block_stop', index: 0 },
  ]
  const assembled = (...events: object[]): Json | undefined =>
    messagesAnswerForms.whole(parseEvents(sse(...events)))
  const json = (partial_json: string): object => ({ type: 'input_json_delta', partial_json })
  const call = { type: 'tool_use', id: 't', name: 'f', input: {} }

  test.each<[string, object[], object]>([
    ['a call without parameters', block(call, json('')), call],
    [
      'a call whose input the first event states',
      block({ ...call, input: { a: 1 } }),
      { ...call, input: { a: 1 } },
    ],
    ['a call that was cut off', block(call, json('{"a":'), json('"b')), call],
    [
      'a delta of an unknown type',
      block({ type: 'text', text: 'x' }, { type: 'new_delta', y: 1 }),
      { type: 'text', text: 'x' },
    ],
    [
      'a text that no event began',
      block({}, { type: 'text_delta', text: 'x' }).slice(1),
      { type: 'text', text: 'x' },
    ],
  ])('%s is assembled like others', (_, events, expected) => {
    expect(assembled(started, ...events, ended)?.['content']).toEqual([expected])
  })

  test('a message that its first event has whole keeps its content, and a repeated first event adds none', () => {
    const whole = { ...started, message: { ...started.message, content: [call] } }
    expect(assembled(whole, whole, ended)).toMatchObject({
      content: [call],
      usage: { input_tokens: 9, output_tokens: 7 },
    })
  })

  test('zeros at the end of a message do not replace the prompt that its first event counts', () => {
    const zeros = { ...ended, usage: { input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 7 } }
    expect(assembled(started, zeros)?.['usage']).toMatchObject({ input_tokens: 9, output_tokens: 7 })
  })

  test('a second message in a stream is not assembled', () => {
    expect(assembled(started, { ...started, message: { id: 'm2' } }, ended)).toBeUndefined()
  })
})

test('a response whose last event does not repeat its items is assembled of those that ended', () => {
  const item = (text: string): object => ({ type: 'message', content: [{ type: 'output_text', text }] })
  const done = (text: string, output_index?: number): object => ({
    type: 'response.output_item.done',
    output_index,
    item: item(text),
  })
  const end = { type: 'response.completed', response: { id: 'r1', status: 'completed', output: [] } }
  const whole = { id: 'r1', status: 'completed', output: [item('a'), item('b')] }
  expect(responsesAnswerForms.whole(parseEvents(sse(done('b', 1), done('a', 0), end)))).toEqual(whole)
  expect(responsesAnswerForms.whole(parseEvents(sse(done('a'), done('b'), end)))).toEqual(whole)
})

test('a Converse stream keeps its citations, and a call without parameters has an empty input', () => {
  const events = [
    ['contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'Hel' } }],
    ['contentBlockDelta', { contentBlockIndex: 0, delta: { citation: { title: 'a' } } }],
    ['contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'lo' } }],
    ['contentBlockDelta', { contentBlockIndex: 0, delta: { new: 1 } }],
    ['contentBlockStart', { contentBlockIndex: 1, start: { toolUse: { toolUseId: 't', name: 'f' } } }],
    ['messageStop', { stopReason: 'tool_use' }],
  ] as const
  const stream = events.map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`).join('')
  expect(converseAnswerForms.whole(parseEvents(stream))?.['output']).toEqual({
    message: {
      role: 'assistant',
      content: [
        { citationsContent: { content: [{ text: 'Hello' }], citations: [{ title: 'a' }] } },
        { toolUse: { toolUseId: 't', name: 'f', input: {} } },
      ],
    },
  })
})

test.each([
  ['end_turn', true],
  ['tool_use', true],
  ['stop_sequence', true],
  ['max_tokens', false],
  ['refusal', false],
  ['pause_turn', false],
  ['model_context_window_exceeded', false],
])('a messages answer counts as complete or not by its stop reason: %s, %s', (stop_reason, expected) => {
  expect(messagesAnswerForms.isComplete({ type: 'message', content: [], stop_reason })).toBe(expected)
})

test.each([
  [{ candidates: [{ finishReason: 'STOP' }] }, true],
  [{ candidates: [{ finishReason: 'STOP' }, { finishReason: 'MAX_TOKENS' }] }, false],
  [{ candidates: [{ finishReason: 'SAFETY' }] }, false],
  [{ candidates: [{ finishReason: 'STOP' }], promptFeedback: { blockReason: 'SAFETY' } }, false],
  [{ candidates: [] }, false],
])('a Gemini answer counts as complete or not: %j, %s', (whole, expected) => {
  expect(geminiAnswerForms.isComplete(whole)).toBe(expected)
})

test.each([
  [{ status: 'completed', output: [] }, true],
  [{ status: 'incomplete', output: [] }, false],
  [{ status: 'failed', output: [] }, false],
  [
    { status: 'completed', output: [{ type: 'message', content: [{ type: 'refusal', refusal: 'No.' }] }] },
    false,
  ],
])('a response counts as complete or not: %j, %s', (whole, expected) => {
  expect(responsesAnswerForms.isComplete(whole)).toBe(expected)
})

test('a Converse answer has the same content whole and as a stream', () => {
  const content = [
    { reasoningContent: { reasoningText: { text: 'Hmm', signature: 's' } } },
    { reasoningContent: { redactedContent: 'QUJD' } },
    { text: 'Hello' },
    { toolUse: { toolUseId: 't1', name: 'f', input: { a: 1 } } },
    { citationsContent: { content: [{ text: 'cited' }] } },
  ]
  const whole = {
    output: { message: { role: 'assistant', content } },
    stopReason: 'tool_use',
    usage: { inputTokens: 1, outputTokens: 2, totalTokens: 3 },
  }
  expect(converseAnswerForms.whole(parseEvents(converseAnswerForms.frames(whole, WITH_USAGE)))).toEqual(whole)
})

test.each(['incomplete', 'failed'])('a response with the status %s keeps it as a stream', (status) => {
  const whole = { id: 'resp_1', object: 'response', status, output: [] }
  const frames = responsesAnswerForms.frames(whole, WITH_USAGE)
  expect(frames).toContain(`event: response.${status}`)
  expect(responsesAnswerForms.whole(parseEvents(frames))).toEqual(whole)
})

describe('members with the names of inherited ones', () => {
  const named = (value: object): string => JSON.stringify(value).replaceAll('PROTO', '__proto__')
  const streamOf = (...chunks: object[]): string => chunks.map((one) => `data: ${named(one)}\n\n`).join('')
  const odd = { PROTO: { free: true }, constructor: { prototype: { free: true } }, toString: 'x' }

  test.each([
    [
      'chat',
      chatAnswerForms,
      { delta: { content: 'hi', tool_calls: [{ index: 0, ...odd }], ...odd }, ...odd },
    ],
    ['completions', completionsAnswerForms, { text: 'hi', logprobs: { tokens: ['hi'], ...odd }, ...odd }],
  ])('change no object but the %s answer that they are in', (_, forms, choice) => {
    const stream = streamOf(
      { choices: [choice], ...odd },
      { choices: [{ ...choice, finish_reason: 'stop' }] },
    )
    const whole = forms.whole(parseEvents(stream))
    expect(whole).toHaveProperty(['choices', 0, 'finish_reason'], 'stop')
    expect({}).not.toHaveProperty('free')
    expect(JSON.stringify(whole)).toContain('"toString":"x')
  })
})
