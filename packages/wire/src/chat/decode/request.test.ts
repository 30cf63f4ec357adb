import { describe, expect, test } from 'vitest'
import type { Conversation } from '../../conversation.ts'
import { scanObject } from '../../json/json-scan.ts'
import { decodeRequest } from './request.ts'

const hello = { role: 'user', content: 'hello' }
const PIXEL = 'iVBORw0KGgo='

function decode(fields: object): { conversation: Conversation; dropped: string[] } {
  const dropped = new Set<string>()
  const body = { model: 'm', messages: [hello], ...fields }
  const conversation = decodeRequest(scanObject(Buffer.from(JSON.stringify(body))), dropped)
  return { conversation, dropped: [...dropped] }
}

const read = (...messages: unknown[]): Conversation => decode({ messages }).conversation
const partsOf = (content: unknown): unknown => read({ role: 'user', content }).turns[0]?.parts
const text = (words: string) => ({ kind: 'text', text: words })
const user = (...parts: unknown[]) => ({ role: 'user', parts })
const assistant = (...parts: unknown[]) => ({ role: 'assistant', parts })
const call = (id: string, name: string, args: unknown) => ({
  id,
  type: 'function',
  function: { name, arguments: args },
})

describe('messages', () => {
  test('system and developer messages of chat become the system prompt, in their order', () => {
    const { system, turns } = read(
      { role: 'system', content: 'one' },
      hello,
      {
        role: 'developer',
        content: [
          { type: 'text', text: 'two' },
          { type: 'text', text: 'three' },
        ],
      },
      { role: 'assistant', content: 'hi' },
      { role: 'system', content: '' },
    )
    const at = { turn: 1, part: 0 }
    expect(system).toEqual([text('one'), { ...text('two'), at }, { ...text('three'), at }])
    expect(turns).toEqual([user(text('hello')), assistant(text('hi'))])
  })

  test("a text's cache mark is kept when chat is decoded, and a cache mark of a whole message moves to its last part", () => {
    const { system, turns } = read(
      {
        role: 'system',
        content: [{ type: 'text', text: 'a', cache_control: { type: 'ephemeral', ttl: '1h' } }],
      },
      { role: 'user', content: 'b', cache_control: { type: 'ephemeral' } },
    )
    expect(system).toEqual([{ ...text('a'), cache: { ttl: '1h' } }])
    expect(turns).toEqual([user({ ...text('b'), cache: { ttl: undefined } })])
  })

  test('consecutive tool results in chat become one user turn, together with the next user message', () => {
    const { turns } = read(
      { role: 'assistant', content: null, tool_calls: [call('a', 'f', '{"x":1}'), call('b', 'g', '')] },
      { role: 'tool', tool_call_id: 'a', content: 'A' },
      { role: 'system', content: 'be brief' },
      { role: 'tool', tool_call_id: 'b', content: [{ type: 'text', text: 'B' }] },
      { role: 'user', content: 'and?' },
      { role: 'user', content: 'go on' },
    )
    expect(turns).toEqual([
      assistant(
        { kind: 'tool-call', id: 'a', name: 'f', input: '{"x":1}' },
        { kind: 'tool-call', id: 'b', name: 'g', input: '{}' },
      ),
      user(
        { kind: 'tool-result', callId: 'a', parts: [text('A')], isError: false },
        { kind: 'tool-result', callId: 'b', parts: [text('B')], isError: false },
        text('and?'),
      ),
      user(text('go on')),
    ])
  })

  test('the text of tool arguments in chat is unchanged, with large integers, key order and invalid JSON', () => {
    const written = '{"id": 9007199254740993, "10": 1, "2": 2,\n "x": 1e400'
    const { turns } = read({ role: 'assistant', tool_calls: [call('a', 'f', written)] })
    expect(turns[0]?.parts[0]).toMatchObject({ input: written })
  })

  test('an assistant message of chat is decoded to thoughts, texts, refusal and calls, in this order', () => {
    const { turns } = read({
      role: 'assistant',
      tool_calls: [call('a', 'f', '{}')],
      refusal: 'no',
      content: 'well',
      reasoning_content: 'hm',
    })
    expect(turns).toEqual([
      assistant({ kind: 'thinking', text: 'hm' }, text('well'), text('no'), {
        kind: 'tool-call',
        id: 'a',
        name: 'f',
        input: '{}',
      }),
    ])
  })

  test('legacy function messages of chat become tool calls and results, paired by name', () => {
    const { turns } = read(
      { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } },
      { role: 'function', name: 'f', content: 'F' },
      { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } },
      { role: 'function', name: 'f', content: 'again' },
    )
    const ids = turns.flatMap(({ parts }) =>
      parts.map((part) => (part.kind === 'tool-call' ? part.id : 'callId' in part ? part.callId : '')),
    )
    expect(ids[0]).toBe(ids[1])
    expect(ids[2]).toBe(ids[3])
    expect(ids[0]).not.toBe(ids[2])
  })

  test('an empty chat message is left out of the conversation; a tool result without a call is kept', () => {
    const { turns } = read(
      { role: 'user', content: '' },
      { role: 'assistant', content: null },
      { role: 'user', content: [{ type: 'text', text: '' }] },
      { role: 'tool', tool_call_id: 'lost', content: '' },
    )
    expect(turns).toEqual([user({ kind: 'tool-result', callId: 'lost', parts: [], isError: false })])
  })

  test('a custom tool call in chat is decoded as a function call whose only argument is the text', () => {
    const custom = { id: 'c', type: 'custom', custom: { name: 'x', input: 'y' } }
    const result = { role: 'tool', tool_call_id: 'c', content: 'z' }
    expect(read({ role: 'assistant', tool_calls: [custom] }, result).turns).toEqual([
      assistant({ kind: 'tool-call', id: 'c', name: 'x', input: '{"input":"y"}', isCustom: true }),
      user({ kind: 'tool-result', callId: 'c', parts: [text('z')], isError: false }),
    ])
  })

  test('a lone surrogate in a text of a chat request is kept', () => {
    expect(partsOf('\ud83d')).toEqual([text('\ud83d')])
  })

  test('citations in the history of a chat request are left out in a conversion and reported as dropped', () => {
    const cited = { url: 'https://a.test/', title: 'A', start_index: 0, end_index: 1 }
    const annotations = [{ type: 'url_citation', url_citation: cited }]
    const { dropped } = decode({ messages: [hello, { role: 'assistant', content: 'x', annotations }, hello] })
    expect(dropped).toEqual(['messages.annotations'])
  })

  test('names and audio of chat messages are left out in a conversion and reported as dropped', () => {
    const { dropped } = decode({
      messages: [
        { ...hello, name: 'Ann' },
        {
          role: 'assistant',
          content: 'x',
          audio: { id: 'a' },
          annotations: [],
          refusal: null,
          prefix: false,
        },
        { role: 'tool', tool_call_id: 'a', name: 'f', content: '' },
      ],
    })
    expect(dropped).toEqual(['messages.name', 'messages.audio'])
  })
})

describe('parts of content', () => {
  const inline = (mediaType: string, data = PIXEL) => ({
    kind: 'media',
    source: { kind: 'inline', mediaType, data },
  })

  test.each([
    [
      'an image in the URL',
      { type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}` } },
      inline('image/png'),
    ],
    [
      'the URL without its object',
      { type: 'image_url', image_url: `data:image/jpg;base64,${PIXEL}` },
      inline('image/jpeg'),
    ],
    [
      'a type with parameters',
      { type: 'image_url', image_url: { url: `DATA:Image/PNG;charset=x;BASE64,${PIXEL}` } },
      inline('image/png'),
    ],
    [
      'no type',
      { type: 'video_url', video_url: { url: `data:;base64,${PIXEL}` } },
      inline('application/octet-stream'),
    ],
    [
      'percent escapes',
      { type: 'image_url', image_url: { url: 'data:image/svg+xml,%3Csvg%2F%3E' } },
      inline('image/svg+xml', 'PHN2Zy8+'),
    ],
    ['mp3', { type: 'input_audio', input_audio: { data: PIXEL, format: 'mp3' } }, inline('audio/mpeg')],
    ['wav', { type: 'input_audio', input_audio: { data: PIXEL, format: 'wav' } }, inline('audio/wav')],
    [
      'another format of audio',
      { type: 'input_audio', input_audio: { data: PIXEL, format: 'flac' } },
      inline('application/octet-stream'),
    ],
    [
      'bytes that are not text',
      { type: 'video_url', video_url: 'data:video/x,%ff%00é' },
      inline('video/x', '/wDDqQ=='),
    ],
    [
      'a file',
      { type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${PIXEL}` } },
      { ...inline('application/pdf'), name: 'a.pdf' },
    ],
    [
      'a file without its type',
      { type: 'file', file: { file_data: ` ${PIXEL.replace('=', '')}\n` } },
      inline('application/octet-stream'),
    ],
    [
      'an image to be fetched',
      { type: 'image_url', image_url: { url: 'https://x.org/a.png' } },
      { kind: 'media', source: { kind: 'url', url: 'https://x.org/a.png', mediaType: 'image/*' } },
    ],
    [
      'a film to be fetched',
      { type: 'video_url', video_url: { url: 'http://x.org/a' } },
      { kind: 'media', source: { kind: 'url', url: 'http://x.org/a', mediaType: 'video/*' } },
    ],
    [
      'a file to be fetched',
      { type: 'file', file: { file_data: 'https://x.org/a.pdf', filename: 'a' } },
      { kind: 'media', source: { kind: 'url', url: 'https://x.org/a.pdf', mediaType: undefined }, name: 'a' },
    ],
    ['a refusal', { type: 'refusal', refusal: 'no' }, text('no')],
    [
      'thoughts in parts',
      { type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] },
      { kind: 'thinking', text: 'hm' },
    ],
    [
      'what only chat may know',
      { type: 'file_url', x: 1 },
      { kind: 'opaque', protocol: 'chat', value: { type: 'file_url', x: 1 } },
    ],
  ])(
    'a content part of a chat message is decoded to the expected part of the neutral form: %s',
    (_, part, expected) => {
      expect(partsOf([part])).toEqual([expected])
    },
  )

  test('an image of a chat message that has a cache mark keeps the mark', () => {
    const part = {
      type: 'image_url',
      image_url: `data:image/png;base64,${PIXEL}`,
      cache_control: { type: 'ephemeral' },
    }
    expect(partsOf([part])).toEqual([{ ...inline('image/png'), cache: { ttl: undefined } }])
  })
})

describe('invalid requests', () => {
  const part = (value: unknown) => ({
    messages: [hello, { role: 'user', content: [{ type: 'text', text: 'x' }, value] }],
  })
  test.each<[string, object]>([
    ['messages[0].role', { messages: [{ role: 'robot', content: 'x' }] }],
    ['messages[1].role', { messages: [hello, { role: '' }] }],
    ['messages[0].content', { messages: [{ role: 'user', content: 7 }] }],
    ['messages[1].content[1]', part('bare')],
    ['messages[1].content[1].type', part({ role: 'user', content: 'x' })],
    ['messages[1].content[1].text', part({ type: 'text', text: 7 })],
    ['messages[1].content[1].image_url', part({ type: 'image_url' })],
    [
      'messages[1].content[1].image_url.url',
      part({ type: 'image_url', image_url: { url: 'file:///etc/passwd' } }),
    ],
    [
      'messages[1].content[1].image_url.url',
      part({ type: 'image_url', image_url: { url: 'data:image/png;base64,@@@@' } }),
    ],
    [
      'messages[1].content[1].image_url.url',
      part({ type: 'image_url', image_url: { url: 'data:image/png;base64,' } }),
    ],
    [
      'messages[1].content[1].image_url.url',
      part({ type: 'image_url', image_url: { url: 'data:image/png' } }),
    ],
    ['messages[1].content[1].image_url', part({ type: 'image_url', image_url: 'data:image/png;base64,%zz' })],
    [
      'messages[1].content[1].input_audio.format',
      part({ type: 'input_audio', input_audio: { data: PIXEL, format: 7 } }),
    ],
    ['messages[1].content[1].file.file_id', part({ type: 'file', file: { file_id: 'file-1' } })],
    ['messages[1].content[1].file.file_data', part({ type: 'file', file: {} })],
    [
      'messages[0].content',
      {
        messages: [
          { role: 'system', content: [{ type: 'image_url', image_url: `data:image/png;base64,${PIXEL}` }] },
        ],
      },
    ],
    ['messages[0].tool_call_id', { messages: [{ role: 'tool', content: 'x' }] }],
    ['messages[0].name', { messages: [{ role: 'function', content: 'x' }] }],
    ['messages[0].tool_calls', { messages: [{ role: 'assistant', tool_calls: {} }] }],
    [
      'messages[0].tool_calls[0].id',
      { messages: [{ role: 'assistant', tool_calls: [{ function: { name: 'f' } }] }] },
    ],
    ['messages[0].tool_calls[0].function', { messages: [{ role: 'assistant', tool_calls: [{ id: 'a' }] }] }],
    [
      'messages[0].tool_calls[0].function.arguments',
      { messages: [{ role: 'assistant', tool_calls: [call('a', 'f', {})] }] },
    ],
    ['messages[0].reasoning_content', { messages: [{ role: 'assistant', reasoning_content: [] }] }],
    ['tools[0].function', { tools: [{ type: 'function' }] }],
    ['tools[0].function.name', { tools: [{ type: 'function', function: {} }] }],
    [
      'tools[0].function.parameters',
      { tools: [{ type: 'function', function: { name: 'f', parameters: 'x' } }] },
    ],
    ['tool_choice', { tool_choice: 'sometimes' }],
    ['tool_choice.type', { tool_choice: { type: 'mcp' } }],
    ['tool_choice.function.name', { tool_choice: { type: 'function', function: {} } }],
    ['tool_choice.allowed_tools', { tool_choice: { type: 'allowed_tools' } }],
    [
      'tool_choice.allowed_tools.mode',
      { tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'none', tools: [] } } },
    ],
    [
      'tool_choice.allowed_tools.tools',
      { tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'auto' } } },
    ],
    [
      'tool_choice.allowed_tools.tools[0].function.name',
      {
        tools: [{ type: 'function', function: { name: 'f' } }],
        tool_choice: {
          type: 'allowed_tools',
          allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: 'g' } }] },
        },
      },
    ],
    ['reasoning_effort', { reasoning_effort: 'extreme' }],
    ['reasoning.effort', { reasoning: { effort: 'extreme' } }],
    ['reasoning.max_tokens', { reasoning: { max_tokens: -1 } }],
    ['reasoning', { reasoning: 'high' }],
    ['thinking.type', { thinking: { type: 'sometimes', budget_tokens: 3000 } }],
    ['thinking.type', { thinking: { type: 7 } }],
    ['web_search_options.search_context_size', { web_search_options: { search_context_size: 'huge' } }],
  ])(
    'an invalid chat request is refused with an error that names the path of the invalid field: %s',
    (path, fields) => {
      expect(() => decode(fields)).toThrow(expect.objectContaining({ code: 'invalid_request' }))
      expect(() => decode(fields)).toThrow(`'${path}'`)
    },
  )

  test('the error for an invalid chat request never quotes the request', () => {
    const secret = { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: 'my secret' }] }] }
    expect(() => decode(secret)).not.toThrow('my secret')
  })
})

describe('fields', () => {
  test.each([
    [{ max_tokens: 10, max_completion_tokens: 20 }, { maxTokens: 20 }],
    [{ max_tokens: 20, max_completion_tokens: 10 }, { maxTokens: 20 }],
    [{ max_tokens: null }, { maxTokens: undefined }],
    [{ stop: 'x' }, { stop: ['x'] }],
    [{ stop: ['x', '', 'y'] }, { stop: ['x', 'y'] }],
    [{ stop: null }, { stop: [] }],
    [
      { temperature: 0, top_p: 0.5, top_k: 3 },
      { temperature: 0, topP: 0.5, topK: 3 },
    ],
    [{ logprobs: true, top_logprobs: 2 }, { logprobs: { top: 2 } }],
    [
      { seed: 0, presence_penalty: 1, frequency_penalty: -1 },
      { seed: 0, presencePenalty: 1, frequencyPenalty: -1 },
    ],
    [
      { stream: true, stream_options: { include_usage: true } },
      { stream: true, includeUsage: true },
    ],
    [{ stream: null }, { stream: false, includeUsage: false }],
    [{ tool_choice: 'auto' }, { toolChoice: { kind: 'auto' }, parallelTools: undefined }],
    [
      { tool_choice: 'required', parallel_tool_calls: false },
      { toolChoice: { kind: 'any' }, parallelTools: false },
    ],
    [
      { tool_choice: 'none', parallel_tool_calls: true },
      { toolChoice: { kind: 'none' }, parallelTools: true },
    ],
    [
      { tool_choice: { type: 'function', function: { name: 'f' } } },
      { toolChoice: { kind: 'tool', name: 'f' } },
    ],
    [{ parallel_tool_calls: false }, { toolChoice: undefined, parallelTools: false }],
    [{ reasoning_effort: 'none' }, { thinking: { kind: 'off', effort: 'none' } }],
    [{ reasoning_effort: 'minimal' }, { thinking: { kind: 'off', effort: 'minimal' } }],
    [{ reasoning_effort: 'xhigh' }, { thinking: { kind: 'adaptive', effort: 'xhigh' } }],
    [{ reasoning_effort: 'max' }, { thinking: { kind: 'adaptive', effort: 'max' } }],
    [
      { reasoning_effort: 'none', reasoning: { max_tokens: 3000 } },
      { thinking: { kind: 'budget', tokens: 3000 } },
    ],
    [{ reasoning: { effort: 'none' } }, { thinking: { kind: 'off', effort: 'none' } }],
    [{ reasoning_effort: 'low' }, { thinking: { kind: 'adaptive', effort: 'low' } }],
    [{ reasoning_effort: 'medium' }, { thinking: { kind: 'adaptive', effort: 'medium' } }],
    [{ reasoning_effort: 'high' }, { thinking: { kind: 'adaptive', effort: 'high' } }],
    [
      { reasoning_effort: 'low', reasoning: { max_tokens: 3000 } },
      { thinking: { kind: 'budget', tokens: 3000 } },
    ],
    [{ reasoning: { effort: 'high' } }, { thinking: { kind: 'adaptive', effort: 'high' } }],
    [{ reasoning: { effort: 'high', max_tokens: 1500 } }, { thinking: { kind: 'budget', tokens: 1500 } }],
    [{ reasoning: { enabled: true } }, { thinking: { kind: 'adaptive', effort: 'medium' } }],
    [{ reasoning: { enabled: false, effort: 'high' } }, { thinking: { kind: 'off' } }],
    [{ reasoning_effort: 'low', reasoning: {} }, { thinking: { kind: 'adaptive', effort: 'low' } }],
    [{ reasoning: null }, { thinking: undefined }],
    [{ thinking: { type: 'auto' } }, { thinking: undefined }],
    [{ thinking: { type: null } }, { thinking: undefined }],
    [{ web_search_options: {} }, { webSearch: { maxUses: 5 } }],
    [{ web_search_options: { search_context_size: 'low' } }, { webSearch: { maxUses: 1 } }],
    [{ web_search_options: { search_context_size: 'medium' } }, { webSearch: { maxUses: 5 } }],
    [
      {
        web_search_options: {
          search_context_size: 'high',
          user_location: { type: 'approximate', approximate: { city: 'Bern', country: 'CH', region: null } },
        },
      },
      { webSearch: { maxUses: 10, location: { city: 'Bern', country: 'CH' } } },
    ],
  ])(
    'the fields %j of a chat request are decoded to the neutral form, and nothing is reported as dropped',
    (fields, expected) => {
      expect(decode(fields).conversation).toMatchObject(expected)
      expect(decode(fields).dropped).toEqual([])
    },
  )

  test('function tools of chat are decoded; other kinds of tools are left out and reported as dropped', () => {
    const { conversation, dropped } = decode({
      tools: [
        {
          type: 'function',
          function: { name: 'f', description: 'F', parameters: { type: 'object' }, strict: true },
        },
        { function: { name: 'g', parameters: null }, cache_control: { type: 'ephemeral' } },
        { type: 'web_search_preview' },
      ],
    })
    expect(conversation.tools).toEqual([
      { name: 'f', description: 'F', schema: '{"type":"object"}', strict: true },
      { name: 'g', description: undefined, schema: undefined, strict: undefined, cache: { ttl: undefined } },
    ])
    expect(dropped).toEqual(['tools.unknown'])
  })
})

describe('allowed_tools', () => {
  const tools = ['f', 'g', 'h'].map((name) => ({ type: 'function', function: { name } }))
  const allowed = (mode: string, ...named: object[]): object => ({
    tools,
    tool_choice: { type: 'allowed_tools', allowed_tools: { mode, tools: named } },
  })

  test.each([
    ['auto', 'auto'],
    ['required', 'any'],
  ])('allowed_tools keeps the named tools, in their order, with the mode %s', (mode, kind) => {
    const named = ['h', 'f'].map((name) => ({ type: 'function', function: { name } }))
    const { conversation, dropped } = decode(allowed(mode, ...named))
    expect(conversation.tools.map(({ name }) => name)).toEqual(['f', 'h'])
    expect(conversation.toolChoice).toEqual({ kind })
    expect(dropped).toEqual([])
  })

  test('allowed_tools of a chat request ignores tools other than functions, which are left out in a conversion', () => {
    const { conversation } = decode(
      allowed('auto', { type: 'mcp', server_label: 'x' }, { type: 'function', function: { name: 'g' } }),
    )
    expect(conversation.tools.map(({ name }) => name)).toEqual(['g'])
  })
})

describe('fields that the conversation cannot express', () => {
  const MEANT = {
    logit_bias: { 1: 1 },
    function_call: { name: 'f' },
    functions: [{ name: 'f' }],
    prediction: { type: 'content', content: 'x' },
    modalities: ['text', 'audio'],
    audio: { voice: 'x', format: 'wav' },
    inference_geo: 'eu',
    speed: 'fast',
  }

  const SHARED = {
    verbosity: 'low',
    user: 'u',
    safety_identifier: 's',
    prompt_cache_key: 'k',
    prompt_cache_retention: '24h',
    metadata: { a: 'b' },
    service_tier: 'flex',
    store: true,
  }

  test.each(Object.entries(MEANT))(
    'a field of a chat request that other dialects cannot express is reported as dropped: %s',
    (field, value) => {
      expect(decode({ [field]: value }).dropped).toEqual([field])
    },
  )

  test.each([
    { n: 1, presence_penalty: 0, frequency_penalty: 0, logit_bias: {}, logprobs: false, top_logprobs: 0 },
    { functions: [], function_call: 'auto', modalities: ['text'] },
    { verbosity: 'medium', user: '', metadata: {}, service_tier: 'auto', store: false },
    Object.fromEntries([...Object.keys(MEANT), ...Object.keys(SHARED)].map((field) => [field, null])),
  ])('a chat field that only states its default is not reported as dropped: %j', (fields) => {
    const { dropped, conversation } = decode(fields)
    expect(dropped).toEqual([])
    expect(conversation.shared).toBeUndefined()
  })

  test.each(Object.entries(SHARED))(
    'a field of a chat request that other dialects share is kept in a conversion: %s',
    (field, value) => {
      const { dropped, conversation } = decode({ [field]: value })
      expect(dropped).toEqual([])
      expect([...(conversation.shared ?? [])]).toEqual([[field, JSON.stringify(value)]])
    },
  )

  test('the name of an unknown field of a chat request is never repeated to the client', () => {
    expect(decode({ 'X-secret': 1, other: 2, nothing: null }).dropped).toEqual(['unknown'])
    expect(decode({ messages: [{ ...hello, 'X-secret': 1 }] }).dropped).toEqual(['unknown'])
  })

  test("a chat request's wish to hide thoughts is reported as dropped, and the detail of an image is kept", () => {
    const image_url = { url: `data:image/png;base64,${PIXEL}`, detail: 'high' }
    const messages = [{ role: 'user', content: [{ type: 'image_url', image_url }] }]
    const { dropped, conversation } = decode({ messages })
    expect(dropped).toEqual([])
    expect(conversation.turns[0]?.parts[0]).toMatchObject({ detail: 'high' })
    expect(decode({ reasoning: { effort: 'low', exclude: true } }).dropped).toEqual(['reasoning.exclude'])
  })
})
