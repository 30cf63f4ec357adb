import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyCharacter } from '../../../../../test/generators/characters.ts'
import { conversationOf, upstreamOf } from '../../../../../test/samples/conversation.ts'
import type { Conversation, MediaPart, Part, Thinking, Turn } from '../../conversation.ts'
import { scanObject } from '../../json/json-scan.ts'
import { serverSchemas } from '../../schemas/chat-servers.ts'
import { encodeRequest, mustFetchMedia } from './request.ts'
import { decodeRequest } from '../decode/request.ts'

function encode(
  fields: Partial<Conversation>,
  model = 'up',
): { request: Record<string, unknown>; dropped: string[] } {
  const dropped = new Set<string>()
  const bytes = encodeRequest(conversationOf(fields), upstreamOf(model), dropped)
  return { request: JSON.parse(bytes.toString()), dropped: [...dropped] }
}

/** Messages for a model that accepts thoughts. */
const messages = (...turns: Turn[]): unknown => encode({ turns }, 'glm-up').request['messages']
const text = (words: string) => ({ kind: 'text', text: words }) as const
const user = (...parts: Part[]): Turn => ({ role: 'user', parts })
const assistant = (...parts: Part[]): Turn => ({ role: 'assistant', parts })
const inline = (mediaType: string, data: string, name?: string): MediaPart => ({
  kind: 'media',
  source: { kind: 'inline', mediaType, data },
  ...(name !== undefined && { name }),
})
const linked = (url: string, mediaType: string | undefined): MediaPart => ({
  kind: 'media',
  source: { kind: 'url', url, mediaType },
})
const tool = { name: 'f', description: 'F', schema: '{"type":"object"}', strict: undefined }
const chatTool = {
  type: 'function',
  function: { name: 'f', description: 'F', parameters: { type: 'object' } },
}

describe('messages', () => {
  test('the system prompt becomes the first chat message, a plain string unless it has a cache mark', () => {
    const turns = [user(text('hello'))]
    expect(encode({ system: [text('one')], turns }).request['messages']).toEqual([
      { role: 'system', content: 'one' },
      { role: 'user', content: 'hello' },
    ])
    expect(encode({ system: [text('one'), text('two')], turns }).request['messages']).toEqual([
      {
        role: 'system',
        content: [
          { type: 'text', text: 'one' },
          { type: 'text', text: 'two' },
        ],
      },
      { role: 'user', content: 'hello' },
    ])
    expect(encode({ system: [{ ...text('one'), cache: { ttl: '1h' } }] }).request['messages']).toEqual([
      {
        role: 'system',
        content: [{ type: 'text', text: 'one', cache_control: { type: 'ephemeral', ttl: '1h' } }],
      },
    ])
  })

  test('an assistant turn becomes a chat message, with null content if it has only tool calls', () => {
    const call = { kind: 'tool-call', id: 'a', name: 'f', input: '{"b":1,"a":9007199254740993}' } as const
    const toolCalls = [
      { id: 'a', type: 'function', function: { name: 'f', arguments: '{"b":1,"a":9007199254740993}' } },
    ]
    expect(messages(assistant({ kind: 'thinking', text: 'hm' }, text('well'), call))).toEqual([
      { role: 'assistant', content: 'well', reasoning_content: 'hm', tool_calls: toolCalls },
    ])
    expect(messages(assistant(call))).toEqual([{ role: 'assistant', content: null, tool_calls: toolCalls }])
    expect(messages(assistant({ ...call, input: '' }))).toMatchObject([
      { tool_calls: [{ function: { arguments: '{}' } }] },
    ])
    expect(messages(assistant({ kind: 'thinking', text: 'hm' }))).toEqual([
      { role: 'assistant', content: '', reasoning_content: 'hm' },
    ])
  })

  test('text next to a tool call is kept when an assistant turn is encoded to chat, whichever was first', () => {
    const call = { kind: 'tool-call', id: 'a', name: 'f', input: '{}' } as const
    expect(messages(assistant(text('before'), call, text('after')))).toMatchObject([
      { content: [{ text: 'before' }, { text: 'after' }], tool_calls: [{ id: 'a' }] },
    ])
  })

  test("tool results become separate chat messages, before the user's text of the same turn", () => {
    const result = (callId: string, ...parts: MediaPart[]) =>
      ({ kind: 'tool-result', callId, parts: [text(callId), ...parts], isError: false }) as const
    expect(messages(user(text('look'), result('a', inline('image/png', 'AA==')), result('b')))).toEqual([
      { role: 'tool', tool_call_id: 'a', content: 'a' },
      { role: 'tool', tool_call_id: 'b', content: 'b' },
      {
        role: 'user',
        content: [
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } },
          { type: 'text', text: 'look' },
        ],
      },
    ])
  })

  test('a tool result that is only an image becomes a user message with the image in chat, to which the result refers', () => {
    const parts = [linked('https://x.org/a.png', 'image/*')]
    expect(messages(user({ kind: 'tool-result', callId: 'a', parts, isError: false }))).toEqual([
      { role: 'tool', tool_call_id: 'a', content: 'The result is in the next message of the user.' },
      { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://x.org/a.png' } }] },
    ])
  })

  test('an assistant turn with nothing but content that chat cannot express is left out of the encoded chat request', () => {
    const opaque = { kind: 'opaque', protocol: 'messages', value: { type: 'redacted_thinking' } } as const
    expect(encode({ turns: [user(text('x')), assistant(opaque)] })).toMatchObject({
      request: { messages: [{ role: 'user' }] },
      dropped: ['content'],
    })
  })

  test.each<[string, MediaPart, object]>([
    [
      'a picture',
      inline('image/png', 'AA=='),
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } },
    ],
    [
      'an image elsewhere',
      linked('https://x.org/a', 'image/png'),
      { type: 'image_url', image_url: { url: 'https://x.org/a' } },
    ],
    [
      'something elsewhere of no known type',
      linked('https://x.org/a', undefined),
      { type: 'image_url', image_url: { url: 'https://x.org/a' } },
    ],
    [
      'a PDF file',
      inline('application/pdf', 'AA==', 'a.pdf'),
      { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,AA==' } },
    ],
    [
      'a PDF file without a name',
      inline('application/pdf', 'AA=='),
      { type: 'file', file: { filename: 'document.pdf', file_data: 'data:application/pdf;base64,AA==' } },
    ],
    [
      'a recording',
      inline('audio/mpeg', 'AA=='),
      { type: 'input_audio', input_audio: { data: 'AA==', format: 'mp3' } },
    ],
    [
      'a recording in another format',
      inline('audio/flac', 'AA=='),
      { type: 'file', file: { filename: 'document', file_data: 'data:audio/flac;base64,AA==' } },
    ],
    [
      'a film',
      inline('video/mp4', 'AA=='),
      { type: 'video_url', video_url: { url: 'data:video/mp4;base64,AA==' } },
    ],
    ['a text document', inline('text/plain', 'aMOp'), { type: 'text', text: 'hé' }],
  ])('media in a conversation are encoded to chat: %s', (_, part, expected) => {
    expect(messages(user(text('x'), part))).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'x' }, expected] },
    ])
    expect(mustFetchMedia(part)).toBe(false)
  })

  test('a document given by its URL cannot be encoded to chat before it is fetched', () => {
    const part = linked('https://x.org/a.pdf', 'application/pdf')
    expect(mustFetchMedia(part)).toBe(true)
    expect(() => messages(user(part))).toThrow(expect.objectContaining({ code: 'invalid_request' }))
  })
})

describe('fields', () => {
  test.each<[Partial<Conversation>, object]>([
    [{}, {}],
    [
      { maxTokens: 10, temperature: 0, topP: 0.5 },
      { max_tokens: 10, temperature: 0, top_p: 0.5 },
    ],
    [{ stop: ['a', 'b'] }, { stop: ['a', 'b'] }],
    [{ stream: true }, { stream: true, stream_options: { include_usage: true } }],
    [
      { tools: [tool], toolChoice: { kind: 'auto' } },
      { tools: [chatTool], tool_choice: 'auto' },
    ],
    [
      { tools: [tool], toolChoice: { kind: 'any' } },
      { tools: [chatTool], tool_choice: 'required' },
    ],
    [
      { tools: [tool], toolChoice: { kind: 'none' } },
      { tools: [chatTool], tool_choice: 'none' },
    ],
    [
      { tools: [tool], toolChoice: { kind: 'tool', name: 'f' }, parallelTools: false },
      {
        tools: [chatTool],
        tool_choice: { type: 'function', function: { name: 'f' } },
        parallel_tool_calls: false,
      },
    ],
    [
      { tools: [{ ...tool, schema: undefined, strict: true, cache: { ttl: undefined } }] },
      {
        tools: [
          {
            type: 'function',
            function: { name: 'f', description: 'F', strict: true },
            cache_control: { type: 'ephemeral' },
          },
        ],
      },
    ],
    [{ toolChoice: { kind: 'auto' }, parallelTools: false }, {}],
    [{ webSearch: { maxUses: 1 } }, { web_search_options: { search_context_size: 'low' } }],
    [{ webSearch: { maxUses: 3 } }, { web_search_options: { search_context_size: 'medium' } }],
    [
      { webSearch: { maxUses: 50, location: { city: 'Bern' } } },
      {
        web_search_options: {
          search_context_size: 'high',
          user_location: { type: 'approximate', approximate: { city: 'Bern' } },
        },
      },
    ],
  ])('a setting of a conversation is encoded to chat: %j', (fields, expected) => {
    const { request, dropped } = encode(fields)
    expect(request).toEqual({ model: 'up', messages: [], ...expected })
    expect(dropped).toEqual([])
  })

  test.each<[Thinking, string | undefined]>([
    [{ kind: 'off' }, undefined],
    [{ kind: 'off', effort: 'none' }, 'none'],
    [{ kind: 'off', effort: 'minimal' }, 'minimal'],
    [{ kind: 'budget', tokens: 2047 }, 'low'],
    [{ kind: 'budget', tokens: 2048 }, 'medium'],
    [{ kind: 'budget', tokens: 4095 }, 'medium'],
    [{ kind: 'budget', tokens: 4096 }, 'high'],
    [{ kind: 'adaptive', effort: 'medium' }, 'medium'],
    [{ kind: 'adaptive', effort: undefined }, undefined],
    [{ kind: 'adaptive', effort: 'xhigh' }, 'high'],
    [{ kind: 'adaptive', effort: 'max' }, 'high'],
  ])('thinking settings %j are encoded to chat as the reasoning_effort %s', (thinking, effort) => {
    expect(encode({ thinking }).request['reasoning_effort']).toBe(effort)
  })

  test.each<[Thinking, string, string]>([
    [{ kind: 'off' }, 'gpt-6-sol', 'none'],
    [{ kind: 'off' }, 'gpt-5.1', 'none'],
    [{ kind: 'off' }, 'gpt-5-mini', 'minimal'],
    [{ kind: 'off' }, 'o3', 'low'],
    [{ kind: 'off' }, 'gpt-5-pro', 'high'],
    [{ kind: 'off' }, 'gemini-2.5-flash', 'none'],
    [{ kind: 'off' }, 'gemini-2.5-pro', 'low'],
    [{ kind: 'adaptive', effort: 'max' }, 'gpt-6-sol', 'max'],
    [{ kind: 'adaptive', effort: 'max' }, 'openai/gpt-5.6-luna', 'max'],
    [{ kind: 'adaptive', effort: 'max' }, 'gpt-5.4', 'xhigh'],
    [{ kind: 'adaptive', effort: 'xhigh' }, 'gpt-5.2-codex', 'xhigh'],
    [{ kind: 'adaptive', effort: 'xhigh' }, 'gpt-5.1', 'high'],
    [{ kind: 'adaptive', effort: 'xhigh' }, 'o4-mini', 'high'],
    [{ kind: 'adaptive', effort: 'low' }, 'gpt-5.2-pro', 'medium'],
    [{ kind: 'budget', tokens: 100_000 }, 'gpt-6-sol', 'high'],
  ])(
    'thinking %j of %s becomes the nearest effort that the model supports: %s',
    (thinking, model, effort) => {
      const { request, dropped } = encode({ thinking }, model)
      expect(request['reasoning_effort']).toBe(effort)
      expect(dropped).toEqual([])
    },
  )

  test.each(['gpt-4o-mini', 'gpt-3.5-turbo', 'gpt-35-turbo', 'chatgpt-4o-latest', 'gpt-5-chat-latest'])(
    'thinking settings are left out and reported as dropped for %s, which does not reason',
    (model) => {
      expect(encode({ thinking: { kind: 'adaptive', effort: 'high' } }, model)).toEqual({
        request: { model, messages: [] },
        dropped: ['thinking'],
      })
      expect(encode({ thinking: { kind: 'off' } }, model)).toEqual({
        request: { model, messages: [] },
        dropped: [],
      })
    },
  )

  test('thinking is turned off for chat models that do not support it together with tools', () => {
    const tools = [tool]
    const high: Thinking = { kind: 'adaptive', effort: 'high' }
    expect(encode({ tools }, 'gpt-6-sol')).toMatchObject({
      request: { reasoning_effort: 'none' },
      dropped: [],
    })
    expect(encode({ tools, thinking: high }, 'gpt-6-sol')).toMatchObject({
      request: { reasoning_effort: 'none' },
      dropped: ['thinking'],
    })
    for (const model of ['gpt-5.4', 'openai/gpt-6-sol'])
      expect(encode({ tools, thinking: high }, model)).toMatchObject({
        request: { reasoning_effort: 'high' },
        dropped: [],
      })
    expect(encode({ tools }, 'openai/gpt-6-sol').request).not.toHaveProperty('reasoning_effort')
  })

  test.each(['o3', 'openai/o4-mini', 'gpt-5', 'gpt-6-sol'])(
    'a reasoning model of OpenAI gets the output maximum as max_completion_tokens: %s',
    (model) => {
      expect(encode({ maxTokens: 7 }, model).request).toEqual({
        model,
        messages: [],
        max_completion_tokens: 7,
      })
    },
  )

  test.each(['up', 'gpt-4o', 'gpt-35-turbo', 'gpt-5-chat-latest', 'gpt-oss-120b', 'command-o1x'])(
    "a model other than OpenAI's reasoning models gets the output maximum as max_tokens: %s",
    (model) => {
      expect(encode({ maxTokens: 7 }, model).request).toEqual({ model, messages: [], max_tokens: 7 })
    },
  )

  test('more stop sequences than chat supports are a 400, as an answer that continued would be wrong', () => {
    expect(() => encode({ stop: ['1', '2', '3', '4', '5'] })).toThrow('stop sequences')
  })

  test('fields that chat cannot express are left out and reported as dropped', () => {
    const proof = { protocol: 'messages', value: 's' } as const
    const cache = { ttl: undefined }
    const turns = [
      assistant(
        { kind: 'thinking', text: 'hm', proof },
        { kind: 'tool-call', id: 'a', name: 'f', input: '{}', cache },
      ),
      user(
        { kind: 'tool-result', callId: 'a', parts: [], isError: true },
        inline('text/plain', 'aMOp', 'a title'),
      ),
    ]
    expect(encode({ turns, topK: 5, toolChoice: { kind: 'any' } }).dropped.toSorted()).toEqual([
      'cache_control',
      'is_error',
      'reasoning_content',
      'signature',
      'title',
      'tool_choice',
      'top_k',
    ])
  })

  test('equal conversations are encoded to equal bytes of chat', () => {
    const one = conversationOf({ temperature: 1, maxTokens: 2, turns: [user(text('x'))] })
    const other = Object.fromEntries(Object.entries(one).toReversed()) as unknown as Conversation
    expect(encodeRequest(other, upstreamOf('up'), new Set())).toEqual(
      encodeRequest(one, upstreamOf('up'), new Set()),
    )
  })
})

describe('chat requests that are decoded and encoded', () => {
  test('numbers in tool schemas are encoded to chat as they were written, also those that no floating-point number equals', () => {
    const schema = '{"type":"integer","maximum":9007199254740993,"multipleOf":1.50,"minimum":-0}'
    const tools = `[{"type":"function","function":{"name":"f","parameters":${schema}}}]`
    const body = `{"model":"m","messages":[{"role":"user","content":"x"}],"tools":${tools}}`
    const conversation = decodeRequest(scanObject(Buffer.from(body)), new Set())
    expect(encodeRequest(conversation, upstreamOf('m'), new Set()).toString()).toBe(body)
  })

  const words = fc.string({ minLength: 1, unit: anyCharacter })
  const name = fc.stringMatching(/^[a-z_]{1,8}$/)
  const cache = fc.option(
    fc.constantFrom({ cache: { ttl: undefined } }, { cache: { ttl: '5m' } }, { cache: { ttl: '1h' } }),
    { nil: {} },
  )
  const data = fc.uint8Array({ minLength: 1 }).map((bytes) => Buffer.from(bytes).toString('base64'))
  const textPart = fc.tuple(words, cache).map(([said, mark]) => ({ ...text(said), ...mark }) as const)
  const media = fc.oneof(
    fc
      .tuple(fc.constantFrom('image/png', 'video/mp4', 'audio/mpeg', 'audio/wav'), data)
      .map(([type, bytes]) => inline(type, bytes)),
    fc.tuple(name, data).map(([title, bytes]) => inline('application/pdf', bytes, `${title}.pdf`)),
    fc.webUrl().map((url) => linked(url, 'image/*')),
  )
  const result = fc
    .tuple(name, fc.array(textPart))
    .map(([callId, parts]) => ({ kind: 'tool-result', callId, parts, isError: false }) as const)
  const userTurn = fc
    .tuple(
      fc.array(result, { maxLength: 2 }),
      fc.array(fc.oneof(textPart, media), { minLength: 1, maxLength: 3 }),
    )
    .map(([results, said]) => user(...results, ...said))
  const json = fc.oneof(
    fc.json().filter((text) => text !== 'null' && text !== '""'),
    fc.constant('{"a": 9007199254740993, "2":0, "1":0}'),
  )
  const call = fc
    .tuple(name, name, json)
    .map(([id, called, input]) => ({ kind: 'tool-call', id, name: called, input }) as const)
  const assistantTurn = fc
    .tuple(
      fc.option(words.map((thought) => ({ kind: 'thinking', text: thought }) as const)),
      fc.array(textPart, { maxLength: 2 }),
      fc.array(call, { maxLength: 3 }),
    )
    .filter(([thought, said, calls]) => thought !== null || said.length + calls.length > 0)
    .map(([thought, said, calls]) => assistant(...(thought ? [thought] : []), ...said, ...calls))
  const some = <T>(values: fc.Arbitrary<T>) => fc.option(values, { nil: undefined })
  const schema = fc.dictionary(name, fc.jsonValue({ maxDepth: 2 })).map((fields) => JSON.stringify(fields))
  const format: fc.Arbitrary<Conversation['outputFormat']> = fc.oneof(
    fc.constant({ kind: 'json-object' as const }),
    fc.record({
      kind: fc.constant('json-schema' as const),
      schema,
      name,
      description: some(words),
      strict: some(fc.boolean()),
    }),
  )
  const anyFormat: fc.Arbitrary<Conversation> = fc.record({
    model: fc.constant('glm-up'),
    stream: fc.boolean(),
    system: fc.array(textPart, { maxLength: 3 }),
    turns: fc.array(fc.tuple(userTurn, assistantTurn), { maxLength: 3 }).map((pairs) => pairs.flat()),
    tools: fc.array(
      fc
        .tuple(
          fc.record({ name, description: some(words), schema: some(schema), strict: some(fc.boolean()) }),
          cache,
        )
        .map(([tool, mark]) => ({ ...tool, ...mark })),
      { minLength: 1, maxLength: 2 },
    ),
    toolChoice: some(
      fc.oneof(
        fc.constantFrom({ kind: 'auto' } as const, { kind: 'any' } as const, { kind: 'none' } as const),
        name.map((chosen) => ({ kind: 'tool', name: chosen }) as const),
      ),
    ),
    parallelTools: some(fc.boolean()),
    maxTokens: some(fc.integer({ min: 1, max: 100_000 })),
    temperature: some(fc.double({ min: 0, max: 2, noNaN: true }).map((n) => n + 0)),
    topP: some(fc.double({ min: 0, max: 1, noNaN: true }).map((n) => n + 0)),
    topK: fc.constant(undefined),
    seed: some(fc.maxSafeInteger().map((n) => n + 0)),
    presencePenalty: some(fc.double({ min: -2, max: 2, noNaN: true }).map((n) => n + 0)),
    frequencyPenalty: some(fc.double({ min: -2, max: 2, noNaN: true }).map((n) => n + 0)),
    stop: fc.array(words, { maxLength: 4 }),
    thinking: some(
      fc
        .constantFrom('low' as const, 'medium' as const, 'high' as const)
        .map((effort) => ({ kind: 'adaptive', effort }) as const),
    ),
    outputFormat: some(format),
    webSearch: some(fc.constantFrom(1, 5, 10).map((maxUses) => ({ maxUses }))),
    logprobs: fc.record({ top: some(fc.integer({ min: 1, max: 20 })) }),
    includeUsage: fc.constant(false),
  })
  // Beside `json_object`, a prompt without the word gets an instruction.
  const conversation = anyFormat.map((said) =>
    said.outputFormat?.kind === 'json-object' ? { ...said, system: [text('JSON'), ...said.system] } : said,
  )

  test('a request that chat can express is unchanged after it is decoded and encoded', () => {
    fc.assert(
      fc.property(conversation, (said) => {
        const dropped = new Set<string>()
        // A server that enforces any schema.
        const plain = upstreamOf('glm-up')
        const upstream = { ...plain, server: { ...plain.server, schemas: serverSchemas('api.mistral.ai') } }
        const bytes = encodeRequest(said, upstream, dropped)
        expect(decodeRequest(scanObject(bytes), dropped)).toEqual({
          ...said,
          includeUsage: said.stream,
          showsThoughts: true,
        })
        expect([...dropped]).toEqual([])
      }),
    )
  })
})
