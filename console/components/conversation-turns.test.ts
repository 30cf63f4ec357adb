import { describe, expect, test } from 'vitest'
import { conversationOfCall, turnsSincePreviousCall } from './conversation-turns.ts'

const events = (...all: readonly object[]): string =>
  all.map((one) => `data: ${JSON.stringify(one)}\n\n`).join('')
const said = (request: object, answer: object | string) =>
  conversationOfCall(JSON.stringify(request), typeof answer === 'string' ? answer : JSON.stringify(answer))
const text = (words: string) => ({ kind: 'text', name: '', text: words })
const call = (name: string, args: string) => ({ kind: 'call', name, text: args })

const CHAT = {
  messages: [
    { role: 'system', content: 'Be brief.' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Look.' },
        { type: 'image_url', image_url: { url: 'https://a/b.png' } },
      ],
    },
    { role: 'assistant', content: null, tool_calls: [{ function: { name: 'look', arguments: '{"at":1}' } }] },
    { role: 'tool', content: 'a cat' },
  ],
}
const CHAT_TURNS = [
  { role: 'system', pieces: [text('Be brief.')] },
  { role: 'user', pieces: [text('Look.'), { kind: 'file', name: 'image_url', text: 'https://a/b.png' }] },
  { role: 'assistant', pieces: [call('look', '{"at":1}')] },
  { role: 'tool', pieces: [{ kind: 'result', name: '', text: 'a cat' }] },
]

describe('the conversation of a call', () => {
  test('the conversation view shows a stored chat completion, whether it was whole or streamed', () => {
    const answer = [{ kind: 'thinking', name: '', text: 'Hm.' }, text('A cat.'), call('say', '{"x":2}')]
    const whole = {
      choices: [
        {
          message: {
            reasoning_content: 'Hm.',
            content: 'A cat.',
            tool_calls: [{ function: { name: 'say', arguments: '{"x":2}' } }],
          },
        },
      ],
    }
    const delta = (fields: object) => ({ choices: [{ index: 0, delta: fields }] })
    const stream = `${events(
      delta({ role: 'assistant', content: '' }),
      delta({ reasoning_content: 'Hm.' }),
      delta({ content: 'A ' }),
      delta({ content: 'cat.' }),
      delta({ tool_calls: [{ index: 0, function: { name: 'say', arguments: '{"x"' } }] }),
      delta({ tool_calls: [{ index: 0, function: { arguments: ':2}' } }] }),
    )}data: [DONE]\n\n`
    for (const given of [whole, stream])
      expect(said(CHAT, given)).toEqual([...CHAT_TURNS, { role: 'assistant', pieces: answer }])
  })

  test('the conversation view shows a stored call of the messages API, whether it was whole or streamed', () => {
    const request = {
      system: [{ type: 'text', text: 'Be brief.' }],
      messages: [
        { role: 'user', content: 'Look.' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'look', input: { at: 1 } }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: 'a cat' }] },
      ],
    }
    const blocks = [
      { type: 'thinking', thinking: 'Hm.', signature: 's' },
      { type: 'text', text: 'A cat.' },
      { type: 'tool_use', id: 'u', name: 'say', input: { x: 2 } },
    ]
    const stream = events(
      { type: 'message_start', message: { content: [] } },
      { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'Hm.' } },
      { type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'A cat.' } },
      {
        type: 'content_block_start',
        index: 2,
        content_block: { type: 'tool_use', id: 'u', name: 'say', input: {} },
      },
      {
        type: 'content_block_delta',
        index: 2,
        delta: { type: 'input_json_delta', partial_json: '{\n  "x": 2\n}' },
      },
    )
    const answer = [
      { kind: 'thinking', name: '', text: 'Hm.' },
      text('A cat.'),
      call('say', '{\n  "x": 2\n}'),
    ]
    for (const given of [{ content: blocks }, stream])
      expect(said(request, given)).toEqual([
        { role: 'system', pieces: [text('Be brief.')] },
        { role: 'user', pieces: [text('Look.')] },
        { role: 'assistant', pieces: [call('look', '{\n  "at": 1\n}')] },
        { role: 'user', pieces: [{ kind: 'result', name: 't', text: 'a cat' }] },
        { role: 'assistant', pieces: answer },
      ])
  })

  test('the conversation view shows a stored call of the responses API, whether whole, streamed or broken off', () => {
    const request = {
      instructions: 'Be brief.',
      input: [
        { role: 'user', content: [{ type: 'input_text', text: 'Look.' }] },
        { type: 'function_call', name: 'look', arguments: '{"at":1}', call_id: 'c' },
        { type: 'function_call_output', call_id: 'c', output: 'a cat' },
      ],
    }
    const response = {
      output: [
        { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hm.' }] },
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'A cat.' }] },
      ],
    }
    const before = [
      { role: 'system', pieces: [text('Be brief.')] },
      { role: 'user', pieces: [text('Look.')] },
      { role: 'assistant', pieces: [call('look', '{"at":1}')] },
      { role: 'tool', pieces: [{ kind: 'result', name: 'c', text: 'a cat' }] },
    ]
    const answer = [{ kind: 'thinking', name: '', text: 'Hm.' }, text('A cat.')]
    const delta = { type: 'response.output_text.delta', item_id: 'i', content_index: 0, delta: 'A c' }
    for (const given of [response, events(delta, { type: 'response.completed', response })])
      expect(said(request, given)).toEqual([...before, { role: 'assistant', pieces: answer }])
    expect(said(request, events(delta))).toEqual([...before, { role: 'assistant', pieces: [text('A c')] }])
    expect(said({ input: 'Look.' }, response)?.[0]).toEqual({ role: 'user', pieces: [text('Look.')] })
  })

  test('the conversation view shows a stored Gemini call, whether its answer was whole, a stream of events or an array', () => {
    const request = {
      systemInstruction: { parts: [{ text: 'Be brief.' }] },
      contents: [
        { role: 'user', parts: [{ text: 'Look.' }, { inlineData: { mimeType: 'image/png', data: 'AAAA' } }] },
        { role: 'model', parts: [{ functionCall: { name: 'look', args: { at: 1 } } }] },
        { role: 'user', parts: [{ functionResponse: { name: 'look', response: { seen: 'a cat' } } }] },
      ],
    }
    const chunk = (...parts: readonly object[]) => ({ candidates: [{ content: { role: 'model', parts } }] })
    const chunks = [chunk({ text: 'Hm.', thought: true }), chunk({ text: 'A ' }), chunk({ text: 'cat.' })]
    const whole = chunk({ text: 'Hm.', thought: true }, { text: 'A cat.' })
    const answer = [{ kind: 'thinking', name: '', text: 'Hm.' }, text('A cat.')]
    for (const given of [whole, events(...chunks), JSON.stringify(chunks)])
      expect(said(request, given)).toEqual([
        { role: 'system', pieces: [text('Be brief.')] },
        { role: 'user', pieces: [text('Look.'), { kind: 'file', name: 'image/png', text: '' }] },
        { role: 'model', pieces: [call('look', '{\n  "at": 1\n}')] },
        { role: 'user', pieces: [{ kind: 'result', name: 'look', text: '{\n  "seen": "a cat"\n}' }] },
        { role: 'assistant', pieces: answer },
      ])
  })

  test('the conversation view shows the error of a failed call in place of its answer', () => {
    const turns = said({ messages: [{ role: 'user', content: 'x' }] }, { error: { message: 'no' } })
    expect(turns?.at(-1)?.pieces).toEqual([{ kind: 'other', name: 'error', text: '{\n  "message": "no"\n}' }])
  })

  test('stored content that matches no known protocol is not shown as a conversation', () => {
    expect(conversationOfCall('', '')).toBeUndefined()
    expect(conversationOfCall('--form', '\u0000')).toBeUndefined()
    expect(conversationOfCall('{"query":"x"}', '{"results":[]}')).toBeUndefined()
  })
})

test('the thread of a session shows for each call only the messages that are new', () => {
  const turn = (words: string) => ({ role: 'user', pieces: [text(words)] }) as never
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map(turn) as [never, never, never, never]
  expect(turnsSincePreviousCall([a, b, c, d], [a, b])).toEqual([c, d])
  expect(turnsSincePreviousCall([a, c], [a, b])).toEqual([c])
  expect(turnsSincePreviousCall([a, b], [a, b])).toEqual([])
  expect(turnsSincePreviousCall([c], [])).toEqual([c])
})
