import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { wholeChat } from '../fixtures/chat-behaviour.ts'
import type { FullResponse } from '../fixtures/client.ts'
import type { Fixture } from '../fixtures/fixture.ts'
import { DIALECTS, type Dialect, type Json } from './facts.ts'
import { startRoads } from './roads.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await startRoads()
})
afterAll(() => fixture?.close())

const INPUT = 'print("ä\n\\u0041")'
const GRAMMAR = { syntax: 'lark', definition: 'start: x' }
const TOOLS = [
  { type: 'function', function: { name: 'f', parameters: { type: 'object' } } },
  {
    type: 'custom',
    custom: { name: 'run', description: 'Runs code.', format: { type: 'grammar', grammar: GRAMMAR } },
  },
]
const CALL = { id: 'call_1', type: 'custom', custom: { name: 'run', input: INPUT } }
const HISTORY = [
  { role: 'user', content: 'hi' },
  { role: 'assistant', content: null, tool_calls: [CALL] },
  { role: 'tool', tool_call_id: 'call_1', content: 'A' },
]
const OTHERS = DIALECTS.filter((dialect) => dialect !== 'chat')

function asked(dialect: Dialect, streamed: boolean, text: string): Promise<FullResponse> {
  fixture.upstream.forget(dialect)
  fixture.upstream.script(
    dialect,
    streamed ? { kind: 'stream', frames: [text], ending: 'no done' } : { kind: 'whole', body: text },
  )
  const tool_choice = { type: 'custom', custom: { name: 'run' } }
  const body = { model: dialect, messages: HISTORY, tools: TOOLS, tool_choice, stream: streamed }
  return fixture.chat('ann', body)
}

const ARGS = { input: INPUT }
/** Answers in which each dialect calls the tool. */
const ANSWERS: Readonly<Record<Dialect, Json>> = {
  chat: {},
  messages: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [{ type: 'tool_use', id: 'call_2', name: 'run', input: ARGS }],
    stop_reason: 'tool_use',
    usage: { input_tokens: 3, output_tokens: 5 },
  },
  responses: {
    id: 'resp_1',
    object: 'response',
    status: 'completed',
    model: 'm',
    output: [{ type: 'custom_tool_call', id: 'ctc_1', call_id: 'call_2', name: 'run', input: INPUT }],
    usage: { input_tokens: 3, output_tokens: 5, total_tokens: 8 },
  },
  gemini: {
    candidates: [
      {
        content: { parts: [{ functionCall: { id: 'call_2', name: 'run', args: ARGS } }] },
        finishReason: 'STOP',
      },
    ],
    usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 5, totalTokenCount: 8 },
  },
}

const frame = (value: Json): string => `event: ${value['type']}\ndata: ${JSON.stringify(value)}\n\n`
const half = (text: string): readonly string[] => [text.slice(0, 16), text.slice(16)]
/** The same as streams, whose arguments come in two pieces where the dialect has any. */
const STREAMS: Readonly<Record<Dialect, string>> = {
  chat: '',
  messages: [
    { type: 'message_start', message: { ...ANSWERS.messages, content: [], stop_reason: null } },
    {
      type: 'content_block_start',
      index: 0,
      content_block: { ...ANSWERS.messages['content'][0], input: {} },
    },
    ...half(JSON.stringify(ARGS)).map((partial_json) => ({
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'input_json_delta', partial_json },
    })),
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 5 } },
    { type: 'message_stop' },
  ]
    .map(frame)
    .join(''),
  responses: [
    { type: 'response.created', response: { ...ANSWERS.responses, status: 'in_progress', output: [] } },
    {
      type: 'response.output_item.added',
      output_index: 0,
      item: { ...ANSWERS.responses['output'][0], input: '' },
    },
    ...half(INPUT).map((delta) => ({
      type: 'response.custom_tool_call_input.delta',
      item_id: 'ctc_1',
      output_index: 0,
      delta,
    })),
    { type: 'response.output_item.done', output_index: 0, item: ANSWERS.responses['output'][0] },
    { type: 'response.completed', response: ANSWERS.responses },
  ]
    .map(frame)
    .join(''),
  gemini: `data: ${JSON.stringify(ANSWERS.gemini)}\n\n`,
}

describe('a custom tool of a client of chat', () => {
  test('a custom tool of a chat request becomes a custom tool of responses, with its tool_choice, calls and results', async () => {
    await asked('responses', false, JSON.stringify(ANSWERS.responses))
    const { tools, tool_choice, input } = JSON.parse(fixture.upstream.only('responses').text) as Json
    expect(tools[1]).toEqual({
      type: 'custom',
      name: 'run',
      description: 'Runs code.',
      format: { type: 'grammar', ...GRAMMAR },
    })
    expect(tool_choice).toEqual({ type: 'custom', name: 'run' })
    expect(input.slice(1)).toEqual([
      { type: 'custom_tool_call', call_id: 'call_1', name: 'run', input: INPUT },
      { type: 'custom_tool_call_output', call_id: 'call_1', output: 'A' },
    ])
  })

  const SCHEMA = { type: 'object', properties: { input: { type: 'string' } }, required: ['input'] }
  const DESCRIPTION = /^Runs code\.[^]*lark grammar:\nstart: x$/

  test('a custom tool of a chat request becomes a function with one text parameter for a messages upstream', async () => {
    await asked('messages', false, JSON.stringify(ANSWERS.messages))
    const { tools, tool_choice, messages } = JSON.parse(fixture.upstream.only('messages').text) as Json
    expect(tools[1]).toMatchObject({ name: 'run', input_schema: SCHEMA })
    expect(tools[1].description).toMatch(DESCRIPTION)
    expect(tool_choice).toMatchObject({ type: 'tool', name: 'run' })
    expect(messages[1].content).toMatchObject([{ type: 'tool_use', id: 'call_1', name: 'run', input: ARGS }])
    expect(messages[2].content).toMatchObject([{ type: 'tool_result', tool_use_id: 'call_1' }])
  })

  test('a custom tool of a chat request becomes a function with one text parameter for a Gemini upstream', async () => {
    await asked('gemini', false, JSON.stringify(ANSWERS.gemini))
    const { tools, contents } = JSON.parse(fixture.upstream.only('gemini').text) as Json
    const declaration = tools[0].functionDeclarations[1]
    expect(declaration).toMatchObject({ name: 'run', parametersJsonSchema: SCHEMA })
    expect(declaration.description).toMatch(DESCRIPTION)
    expect(contents[1].parts).toMatchObject([{ functionCall: { name: 'run', args: ARGS } }])
    expect(contents[2].parts).toMatchObject([{ functionResponse: { name: 'run' } }])
  })

  test.each(OTHERS)(
    "a whole answer of a %s upstream calls a chat client's custom tool as the client declared it",
    async (dialect) => {
      const answer = await asked(dialect, false, JSON.stringify(ANSWERS[dialect]))
      const [choice] = (answer.json() as Json)['choices']
      expect(choice.finish_reason).toBe('tool_calls')
      expect(choice.message.tool_calls).toEqual([{ ...CALL, id: 'call_2' }])
      expect(answer.headers['x-gateway-dropped']).toBeUndefined()
    },
  )

  test.each(OTHERS)(
    "a streamed answer of a %s upstream calls a chat client's custom tool as the client declared it",
    async (dialect) => {
      const answer = await asked(dialect, true, STREAMS[dialect])
      const chunks = [...answer.text.matchAll(/^data: (\{.*)$/gm)].map(
        ([, data = '']) => JSON.parse(data) as Json,
      )
      const calls = chunks.flatMap(({ choices: [choice] }) => choice?.delta.tool_calls ?? [])
      expect(calls[0]).toEqual({ index: 0, id: 'call_2', type: 'custom', custom: { name: 'run', input: '' } })
      expect(calls.map(({ custom }) => custom.input).join('')).toBe(INPUT)
      expect(chunks.findLast(({ choices: [choice] }) => choice)?.['choices'][0].finish_reason).toBe(
        'tool_calls',
      )
    },
  )
})

describe('a tool that Anthropic defines and a client of messages runs', () => {
  const EDITS = ['path', 'file_text', 'old_str', 'new_str', 'insert_line', 'view_range']

  test.each([
    ['bash_20250124', 'bash', { command: 'ls' }, ['command', 'restart'], undefined],
    [
      'text_editor_20250728',
      'str_replace_based_edit_tool',
      { command: 'view', path: '/a' },
      ['command', ...EDITS, 'insert_text'],
      ['view', 'create', 'str_replace', 'insert'],
    ],
    [
      'text_editor_20250124',
      'str_replace_editor',
      { command: 'undo_edit', path: '/a' },
      ['command', ...EDITS],
      ['view', 'create', 'str_replace', 'insert', 'undo_edit'],
    ],
    [
      'memory_20250818',
      'memory',
      { command: 'delete', path: '/memories/a' },
      ['command', ...EDITS, 'insert_text', 'old_path', 'new_path'],
      ['view', 'create', 'str_replace', 'insert', 'delete', 'rename'],
    ],
  ])(
    '%s becomes a function for a chat upstream, is forced, and is called by its name',
    async (type, name, input, members, commands) => {
      fixture.upstream.forget('chat')
      fixture.upstream.script(
        'chat',
        wholeChat({ calls: [{ id: 'call_1', name, input: JSON.stringify(input) }] }),
      )
      const answer = await fixture.chat(
        'ann',
        {
          model: 'chat',
          max_tokens: 100,
          messages: [{ role: 'user', content: 'hi' }],
          tools: [{ type, name }],
          tool_choice: { type: 'tool', name },
        },
        { path: '/v1/messages' },
      )
      expect([answer.status, answer.headers['x-gateway-dropped']]).toEqual([200, undefined])
      const { tools, tool_choice } = JSON.parse(fixture.upstream.only('chat').text) as Json
      expect(tool_choice).toEqual({ type: 'function', function: { name } })
      const { properties } = tools[0].function.parameters
      expect(tools[0].function).toMatchObject({ name, description: expect.any(String) })
      expect(Object.keys(properties).toSorted()).toEqual(members.toSorted())
      expect(properties.command.enum).toEqual(commands)
      expect((answer.json() as Json)['content']).toMatchObject([{ type: 'tool_use', name, input }])
    },
  )
})
