import { describe, expect, test } from 'vitest'
import type { CallKind } from '../domain/endpoints.ts'
import { conversationOfContent } from './conversation.ts'

const events = (...all: readonly object[]): string =>
  all.map((one) => `data: ${JSON.stringify(one)}\n\n`).join('')
const written = (value: object | string): Buffer =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value))

/** The conversation of a call whose request and answer were passed on unchanged. */
function said(kind: CallKind, request: object | string, answer: object | string = '') {
  const parts = [written(request), written(answer)] as const
  return conversationOfContent(kind, Buffer.concat(parts), [parts[0].length, -1, parts[1].length, -1])
}

const text = (words: string) => ({ kind: 'text', text: words })
const call = (name: string, input: string) => ({ kind: 'tool-call', name, input })
const result = (...parts: readonly object[]) => ({ kind: 'tool-result', parts })
const turn = (role: string, ...parts: readonly object[]) => ({ role, parts })

describe('docs/api.md: Content log', () => {
  test('the conversation of a chat call has its turns, whether the answer was whole or streamed', () => {
    const request = {
      messages: [
        { role: 'system', content: 'Be brief.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Look.' },
            { type: 'image_url', image_url: { url: 'https://a/b.png' } },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
          ],
        },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c', type: 'function', function: { name: 'look', arguments: '{"at":1}' } }],
        },
        { role: 'tool', tool_call_id: 'c', content: 'a cat' },
        { role: 'tool', tool_call_id: 'd', content: '' },
      ],
      tools: [{ type: 'function', function: { name: 'look', description: 'Looks.' } }],
      model: 'm',
      metadata: { note: 'private' },
    }
    const message = {
      role: 'assistant',
      reasoning_content: 'Hm.',
      content: 'A cat.',
      tool_calls: [{ id: 'e', type: 'function', function: { name: 'say', arguments: '{"x":2}' } }],
    }
    const delta = (fields: object) => ({ id: 'x', model: 'm', choices: [{ index: 0, delta: fields }] })
    const streamed = [
      delta({ role: 'assistant', content: '' }),
      delta({ reasoning_content: 'Hm.' }),
      delta({ content: 'A ' }),
      delta({ content: 'cat.' }),
      delta({
        tool_calls: [{ index: 0, id: 'e', type: 'function', function: { name: 'say', arguments: '{"x"' } }],
      }),
      delta({ tool_calls: [{ index: 0, function: { arguments: ':2}' } }] }),
    ]
    const turns = [
      turn('system', text('Be brief.')),
      turn(
        'user',
        text('Look.'),
        { kind: 'media', type: 'image_url', url: 'https://a/b.png' },
        { kind: 'media', type: 'image/png' },
      ),
      turn('assistant', call('look', '{"at":1}')),
      turn('tool', result(text('a cat')), result()),
      turn('assistant', { kind: 'thinking', text: 'Hm.' }, text('A cat.'), call('say', '{"x":2}')),
    ]
    for (const answer of [
      { id: 'x', model: 'm', choices: [{ index: 0, message, finish_reason: 'tool_calls' }] },
      `${events(...streamed)}data: [DONE]\n\n`,
      // A stream that broke off has what there was.
      events(...streamed),
    ])
      expect(said('chat', request, answer)).toEqual(turns)
  })

  test('each choice of an answer is a turn', () => {
    const choice = (index: number) => ({
      index,
      message: { role: 'assistant', content: `number ${index}` },
      finish_reason: 'stop',
    })
    const answer = { id: 'x', model: 'm', choices: [choice(0), choice(1)] }
    expect(said('chat', { messages: [{ role: 'user', content: 'x' }], n: 2 }, answer)?.slice(1)).toEqual([
      turn('assistant', text('number 0')),
      turn('assistant', text('number 1')),
    ])
  })

  test('the conversation of a messages call begins with its instructions, wherever they stand in the request', () => {
    const request = {
      messages: [
        { role: 'user', content: 'Look.' },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'Hm.', signature: 'secret' },
            { type: 'tool_use', id: 't', name: 'look', input: { at: 1 } },
          ],
        },
        {
          role: 'user',
          content: [
            {
              type: 'tool_result',
              tool_use_id: 't',
              content: [
                { type: 'text', text: 'a cat' },
                { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
              ],
            },
            { type: 'text', text: 'And?', cache_control: { type: 'ephemeral' } },
          ],
        },
      ],
      system: [{ type: 'text', text: 'Be brief.' }],
    }
    const blocks = [
      { type: 'text', text: 'A cat.' },
      { type: 'tool_use', id: 'u', name: 'say', input: { x: 2 } },
    ]
    const whole = {
      id: 'm',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: blocks,
      stop_reason: 'tool_use',
      usage: { input_tokens: 1, output_tokens: 1 },
    }
    const stream = events(
      { type: 'message_start', message: { ...whole, content: [], stop_reason: null } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'A cat.' } },
      { type: 'content_block_stop', index: 0 },
      {
        type: 'content_block_start',
        index: 1,
        content_block: { type: 'tool_use', id: 'u', name: 'say', input: {} },
      },
      { type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json: '{"x":2}' } },
    )
    for (const answer of [whole, stream])
      expect(said('messages', request, answer)).toEqual([
        turn('system', text('Be brief.')),
        turn('user', text('Look.')),
        turn('assistant', { kind: 'thinking', text: 'Hm.' }, call('look', '{"at":1}')),
        turn('tool', result(text('a cat'), { kind: 'media', type: 'image/png' })),
        turn('user', text('And?')),
        turn('assistant', text('A cat.'), call('say', '{"x":2}')),
      ])
  })

  test('the conversation of a responses call has its items, and what a stream that broke off had said', () => {
    const request = {
      instructions: 'Be brief.',
      previous_response_id: 'resp_1',
      input: [
        { role: 'user', content: [{ type: 'input_text', text: 'Look.' }] },
        {
          type: 'reasoning',
          id: 'r',
          summary: [{ type: 'summary_text', text: 'Hm.' }],
          encrypted_content: 'sealed',
        },
        { type: 'function_call', name: 'look', arguments: '{"at":1}', call_id: 'c' },
        { type: 'function_call_output', call_id: 'c', output: 'a cat' },
        { type: 'web_search_call', id: 'w', status: 'completed', action: { type: 'search', query: 'cats' } },
      ],
    }
    const output = [
      {
        type: 'message',
        id: 'i',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: 'A cat.', annotations: [] }],
      },
    ]
    const whole = { id: 'resp_2', object: 'response', model: 'm', status: 'completed', output, usage: null }
    const cut = events(
      { type: 'response.created', response: { ...whole, status: 'in_progress', output: [] } },
      { type: 'response.output_item.added', output_index: 0, item: { ...output[0], content: [] } },
      {
        type: 'response.content_part.added',
        item_id: 'i',
        output_index: 0,
        content_index: 0,
        part: { type: 'output_text', text: '', annotations: [] },
      },
      { type: 'response.output_text.delta', item_id: 'i', output_index: 0, content_index: 0, delta: 'A c' },
    )
    const before = [
      turn('system', text('Be brief.')),
      turn('user', text('Look.')),
      turn('assistant', { kind: 'thinking', text: 'Hm.' }, call('look', '{"at":1}')),
      turn('tool', result(text('a cat'))),
    ]
    const searched = call('web_search_call', '{"type":"search","query":"cats"}')
    const turns = said('responses', request, whole)
    expect(turns).toEqual([...before, turn('assistant', searched), turn('assistant', text('A cat.'))])
    expect(said('responses', request, cut)?.at(-1)).toEqual(turn('assistant', text('A c')))
  })

  test('the conversation of a Gemini call is the same for a whole answer, a stream of events and an array', () => {
    const request = {
      system_instruction: { role: 'user', parts: [{ text: 'Be brief.' }] },
      cachedContent: 'cachedContents/1',
      contents: [
        {
          role: 'user',
          parts: [
            { text: 'Look.' },
            { inlineData: { mimeType: 'image/png', data: 'AAAA' } },
            { fileData: { mimeType: 'video/mp4', fileUri: 'https://a/b.mp4' } },
          ],
        },
        {
          role: 'model',
          parts: [{ functionCall: { name: 'look', args: { at: 1 } } }, { functionCall: { name: 'wait' } }],
        },
        { role: 'user', parts: [{ functionResponse: { name: 'look', response: { seen: 'a cat' } } }] },
      ],
    }
    const chunk = (...parts: readonly object[]) => ({ candidates: [{ content: { role: 'model', parts } }] })
    const chunks = [chunk({ text: 'Hm.', thought: true }), chunk({ text: 'A ' }), chunk({ text: 'cat.' })]
    const whole = chunk({ text: 'Hm.', thought: true }, { text: 'A cat.' })
    for (const answer of [whole, events(...chunks), JSON.stringify(chunks)])
      expect(said('gemini', request, answer)).toEqual([
        turn('system', text('Be brief.')),
        turn(
          'user',
          text('Look.'),
          { kind: 'media', type: 'image/png' },
          { kind: 'media', type: 'video/mp4', url: 'https://a/b.mp4' },
        ),
        turn('assistant', call('look', '{"at":1}'), call('wait', '')),
        turn('tool', result({ kind: 'opaque', json: '{"seen":"a cat"}' })),
        turn('assistant', { kind: 'thinking', text: 'Hm.' }, text('A cat.')),
      ])
  })

  test('the variables of a stored prompt are in the conversation', () => {
    const prompt = {
      id: 'pmpt_1',
      variables: { name: 'Ann', picture: { type: 'input_image', file_id: 'file-1' } },
    }
    expect(said('responses', { prompt })).toEqual([
      turn('user', text('Ann'), { kind: 'media', type: 'input_image' }),
    ])
  })

  test("a provider's tools are the same in an answer and in the next request, so that a thread shows them once", () => {
    const content = [
      { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'cats' } },
      {
        type: 'web_search_tool_result',
        tool_use_id: 's',
        content: [
          { type: 'web_search_result', title: 'Cats', url: 'https://a/cats', encrypted_content: 'sealed' },
        ],
      },
      { type: 'text', text: 'A cat.' },
    ]
    const whole = {
      id: 'm',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content,
      stop_reason: 'end_turn',
      usage: { input_tokens: 1, output_tokens: 1 },
    }
    const question = { role: 'user', content: 'Look.' }
    const answered = said('messages', { messages: [question] }, whole)
    expect(answered).toEqual(said('messages', { messages: [question, { role: 'assistant', content }] }))
    expect(answered?.map(({ role, parts }) => [role, parts[0]?.kind])).toEqual([
      ['user', 'text'],
      ['assistant', 'tool-call'],
      ['tool', 'tool-result'],
      ['assistant', 'text'],
    ])
  })

  test('an error is in the conversation as JSON, in place of the answer or at the end of its stream', () => {
    const request = { messages: [{ role: 'user', content: 'x' }] }
    const error = { error: { message: 'no', type: 'api_error' } }
    const refused = said('chat', request, error)
    expect(refused?.at(-1)).toEqual(turn('assistant', { kind: 'opaque', json: JSON.stringify(error) }))
    const broken = said(
      'chat',
      request,
      events({ id: 'x', model: 'm', choices: [{ index: 0, delta: { content: 'A' } }] }, error),
    )
    expect(broken?.slice(1)).toEqual([
      turn('assistant', text('A')),
      turn('assistant', { kind: 'opaque', json: expect.stringContaining('"no"') }),
    ])
  })

  test('a part that its dialect does not define is in the conversation as it was written', () => {
    const part = '{"type":"hologram", "hologram":{"at":[1.0]}}'
    expect(said('chat', `{"messages":[{"role":"user","content":[${part}]}]}`)).toEqual([
      turn('user', { kind: 'opaque', json: part }),
    ])
  })

  test('the conversation of a completion is its prompt, and its answer as JSON', () => {
    const answer = {
      id: 'x',
      object: 'text_completion',
      model: 'm',
      choices: [{ index: 0, text: ' time', finish_reason: 'stop' }],
    }
    expect(said('completions', { model: 'm', prompt: 'Once upon a' }, answer)).toEqual([
      turn('user', text('Once upon a')),
      turn('assistant', { kind: 'opaque', json: JSON.stringify(answer) }),
    ])
  })

  test.each<[CallKind, string, string]>([
    ['chat', '', ''],
    ['chat', '{"messages":[{"role":"user","content":"cut', ''],
    ['chat', '--form', '\u0000'],
    ['rerank', '{"query":"x"}', '{"results":[]}'],
    ['', '{"messages":[{"role":"user","content":"x"}]}', ''],
  ])('content that cannot be read as a conversation has none: %s %j', (kind, request, answer) => {
    expect(said(kind, request, answer)).toBeUndefined()
  })

  test('a request is shown even if its answer cannot be read or is above 8 MiB', () => {
    const request = { messages: [{ role: 'user', content: 'x' }] }
    const large = events({ choices: [{ index: 0, delta: { content: 'x'.repeat(2 ** 20) } }] }).repeat(9)
    for (const answer of ['', '{"choices":[{"mess', '\u0000', large])
      expect(said('chat', request, answer)).toEqual([turn('user', text('x'))])
  })
})
