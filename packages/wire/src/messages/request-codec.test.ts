import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { conversationOf, upstreamOf } from '../../../../test/samples/conversation.ts'
import { WireError } from '../wire-error.ts'
import type { Conversation, Part, Turn } from '../conversation.ts'
import { scanObject } from '../json/json-scan.ts'
import { messagesCodec } from './index.ts'
import { readMessagesRequest } from './native/request.ts'
import { lawRuns } from '../../../../test/runner/tier.ts'

const HI: Turn = { role: 'user', parts: [{ kind: 'text', text: 'hi' }] }

type Body = Record<string, unknown> & { messages: { role: string; content: Record<string, unknown>[] }[] }

interface Encoded {
  readonly body: Body
  readonly text: string
  readonly dropped: string[]
}

function encode(fields: Partial<Conversation>): Encoded {
  const dropped = new Set<string>()
  const text = messagesCodec
    .encodeRequest(conversationOf({ turns: [HI], ...fields }), upstreamOf('up'), dropped)
    .toString()
  // Checks that the encoded request is valid for its dialect.
  readMessagesRequest(scanObject(Buffer.from(text)))
  return { body: JSON.parse(text) as Body, text, dropped: [...dropped].sort() }
}

function decode(request: string): { conversation: Conversation; dropped: string[] } {
  const dropped = new Set<string>()
  const conversation = messagesCodec.decodeRequest(scanObject(Buffer.from(request)), dropped)
  return { conversation, dropped: [...dropped].sort() }
}

const decoded = (fields: object): ReturnType<typeof decode> =>
  decode(
    JSON.stringify({ model: 'm', max_tokens: 5, messages: [{ role: 'user', content: 'hi' }], ...fields }),
  )

function refusal(action: () => unknown): string {
  try {
    action()
  } catch (error) {
    expect((error as WireError).code).toBe('invalid_request')
    return (error as WireError).message
  }
  return 'accepted'
}

const partsOf = (...content: object[]): readonly Part[] =>
  decoded({ messages: [{ role: 'user', content }] }).conversation.turns[0]?.parts ?? []
const assistantParts = (...content: object[]): readonly Part[] =>
  decoded({ messages: [{ role: 'assistant', content }] }).conversation.turns[0]?.parts ?? []
const say = (role: Turn['role'], ...parts: Part[]): Turn => ({ role, parts })
const words = (text: string): Part => ({ kind: 'text', text })
const call = (id: string, input = '{}'): Part => ({ kind: 'tool-call', id, name: 'f', input })
const answer = (callId: string, text = 'r'): Part => ({
  kind: 'tool-result',
  callId,
  parts: [{ kind: 'text', text }],
  isError: false,
})
const TOOL = { name: 'f', description: undefined, schema: '{"type":"object"}', strict: undefined }

describe('reading a messages request', () => {
  test('the system prompt of a messages request is decoded from a string or from blocks with their cache marks', () => {
    expect(decoded({ system: 'S' }).conversation.system).toEqual([{ kind: 'text', text: 'S' }])
    const blocks = [
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b', cache_control: { type: 'ephemeral', ttl: '1h' } },
    ]
    expect(decoded({ system: blocks }).conversation.system).toEqual([
      { kind: 'text', text: 'a' },
      { kind: 'text', text: 'b', cache: { ttl: '1h' } },
    ])
    expect(decoded({ system: null }).conversation.system).toEqual([])
  })

  test('system messages between the turns of a messages request are added to its system prompt', () => {
    const { system, turns } = decoded({
      system: 'S',
      messages: [
        { role: 'user', content: 'U' },
        { role: 'system', content: [{ type: 'text', text: 'T' }] },
      ],
    }).conversation
    expect(system.map(({ text }) => text)).toEqual(['S', 'T'])
    expect(turns).toHaveLength(1)
  })

  test('images of a messages request are decoded, inline or by URL', () => {
    expect(
      partsOf({ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA==' } }),
    ).toEqual([{ kind: 'media', source: { kind: 'inline', mediaType: 'image/png', data: 'AA==' } }])
    expect(
      partsOf({ type: 'image', source: { type: 'url', url: 'u' }, cache_control: { type: 'ephemeral' } }),
    ).toEqual([
      { kind: 'media', source: { kind: 'url', url: 'u', mediaType: 'image/*' }, cache: { ttl: undefined } },
    ])
  })

  test('documents of a messages request are decoded as files, text, or blocks', () => {
    const document = (source: object, more: object = {}) => partsOf({ type: 'document', source, ...more })
    expect(document({ type: 'base64', media_type: 'application/pdf', data: 'AA==' }, { title: 'T' })).toEqual(
      [{ kind: 'media', source: { kind: 'inline', mediaType: 'application/pdf', data: 'AA==' }, name: 'T' }],
    )
    expect(document({ type: 'url', url: 'u' })).toEqual([
      { kind: 'media', source: { kind: 'url', url: 'u', mediaType: 'application/pdf' } },
    ])
    expect(
      document({ type: 'text', media_type: 'text/plain', data: 'D' }, { title: 'T', context: 'C' }),
    ).toEqual([{ kind: 'text', text: 'T\n\nC\n\nD' }])
    const content = [
      { type: 'text', text: 'a' },
      { type: 'image', source: { type: 'url', url: 'u' } },
    ]
    const mark = { cache_control: { type: 'ephemeral' } }
    expect(document({ type: 'content', content }, mark)).toEqual([
      { kind: 'text', text: 'a' },
      { kind: 'media', source: { kind: 'url', url: 'u', mediaType: 'image/*' }, cache: { ttl: undefined } },
    ])
    expect(document({ type: 'content', content: 'x' })).toEqual([{ kind: 'text', text: 'x' }])
  })

  test('what a messages request says about a document is a text before it', () => {
    const about = { title: 'T', context: 'C', cache_control: { type: 'ephemeral' } }
    const document = (source: object) => partsOf({ type: 'document', source, ...about })
    const cache = { ttl: undefined }
    const inline = { mediaType: 'application/pdf', data: 'AA==' }
    expect(document({ type: 'base64', media_type: inline.mediaType, data: inline.data })).toEqual([
      words('C'),
      { kind: 'media', source: { kind: 'inline', ...inline }, name: 'T', cache },
    ])
    expect(document({ type: 'url', url: 'u' })).toEqual([
      words('C'),
      { kind: 'media', source: { kind: 'url', url: 'u', mediaType: 'application/pdf' }, name: 'T', cache },
    ])
    expect(document({ type: 'content', content: [{ type: 'text', text: 'a' }] })).toEqual([
      words('T\n\nC'),
      { ...words('a'), cache },
    ])
    const empty = { type: 'document', title: '', context: null }
    expect(partsOf({ ...empty, source: { type: 'content', content: 'x' } })).toEqual([words('x')])
  })

  test('the input of a tool call in a messages request is decoded as its exact text', () => {
    const input = '{ "b": 9007199254740993, "2": 1.0,"1":"\\u00e9" }'
    const request = `{"model":"m","max_tokens":1,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":${input}}]}]}`
    expect(decode(request).conversation.turns[0]?.parts).toEqual([
      { kind: 'tool-call', id: 'a', name: 'f', input },
    ])
  })

  test('tool results in a messages request are decoded with text and media, and may be errors', () => {
    expect(partsOf({ type: 'tool_result', tool_use_id: 'a', content: 'x', is_error: true })).toEqual([
      { kind: 'tool-result', callId: 'a', parts: [{ kind: 'text', text: 'x' }], isError: true },
    ])
    expect(
      partsOf({
        type: 'tool_result',
        tool_use_id: 'a',
        content: [
          { type: 'text', text: 'x' },
          { type: 'image', source: { type: 'url', url: 'u' } },
          { type: 'container_upload', file_id: 't' },
        ],
      }),
    ).toEqual([
      {
        kind: 'tool-result',
        callId: 'a',
        isError: false,
        parts: [
          { kind: 'text', text: 'x' },
          { kind: 'media', source: { kind: 'url', url: 'u', mediaType: 'image/*' } },
          { kind: 'opaque', protocol: 'messages', value: { type: 'container_upload', file_id: 't' } },
        ],
      },
    ])
    expect(partsOf({ type: 'tool_result', tool_use_id: 'a' })).toMatchObject([{ parts: [] }])
  })

  test('thoughts in a messages request keep their signature, and blocks that only messages knows stay unchanged', () => {
    const redacted = { type: 'redacted_thinking', data: 'x' }
    expect(
      assistantParts(
        { type: 'thinking', thinking: 'hm', signature: 's' },
        { type: 'thinking', thinking: 'unsigned', signature: '' },
        redacted,
      ),
    ).toEqual([
      { kind: 'thinking', text: 'hm', proof: { protocol: 'messages', value: 's' } },
      { kind: 'thinking', text: 'unsigned' },
      { kind: 'opaque', protocol: 'messages', value: redacted },
    ])
  })

  test("tools of a messages request keep their schema; of the provider's own tools, web search is kept and others are left out", () => {
    const { conversation, dropped } = decoded({
      tools: [
        {
          name: 'f',
          description: 'd',
          strict: true,
          input_schema: { type: 'object', $defs: {} },
          cache_control: { type: 'ephemeral' },
        },
        {
          type: 'web_search_20250305',
          name: 'web_search',
          max_uses: 3,
          user_location: { type: 'approximate', city: 'Ulm' },
        },
        { type: 'code_execution_20260120', name: 'code_execution' },
      ],
      tool_choice: { type: 'any', disable_parallel_tool_use: true },
    })
    expect(conversation).toMatchObject({
      tools: [
        {
          name: 'f',
          description: 'd',
          strict: true,
          schema: '{"type":"object","$defs":{}}',
          cache: { ttl: undefined },
        },
      ],
      webSearch: { maxUses: 3, location: { city: 'Ulm' } },
      toolChoice: { kind: 'any' },
      parallelTools: false,
    })
    expect(dropped).toEqual(['tools.server'])
  })

  test('the tool choice of a messages request is removed if no tools are left', () => {
    const { conversation, dropped } = decoded({
      tools: [{ type: 'code_execution_20260120', name: 'code_execution' }],
      tool_choice: { type: 'auto' },
    })
    expect(conversation).toMatchObject({ tools: [], toolChoice: undefined, parallelTools: undefined })
    expect(dropped).toEqual(['tool_choice', 'tools.server'])
  })

  test.each([
    [{ thinking: { type: 'enabled', budget_tokens: 2000 } }, { kind: 'budget', tokens: 2000 }],
    [{ thinking: { type: 'disabled' } }, { kind: 'off' }],
    [{ thinking: { type: 'adaptive' } }, { kind: 'adaptive', effort: undefined }],
    [
      { thinking: { type: 'adaptive' }, output_config: { effort: 'low' } },
      { kind: 'adaptive', effort: 'low' },
    ],
    [{ output_config: { effort: 'xhigh' } }, { kind: 'adaptive', effort: 'xhigh' }],
    [{ output_config: { effort: 'max' } }, { kind: 'adaptive', effort: 'max' }],
    [{}, undefined],
  ])('the thinking settings of a messages request are decoded: %j', (fields, expected) => {
    expect(decoded(fields).conversation.thinking).toEqual(expected)
    expect(decoded(fields).dropped).toEqual([])
  })

  test('fields that are left out of a messages request are reported by fixed names, an unknown field as "unknown"', () => {
    const { dropped } = decoded({
      metadata: { session: 's' },
      cache_control: { type: 'ephemeral' },
      service_tier: 'novel',
      inference_geo: 'eu',
      speed: null,
      container: 'c',
      mcp_servers: [],
      context_management: {},
      output_config: { novelty: {} },
      'text of the caller': 1,
      messages: [{ role: 'user', content: [{ type: 'text', text: 'x', citations: [{}] }] }],
    })
    expect(dropped).toEqual([
      'cache_control',
      'citations',
      'container',
      'context_management',
      'inference_geo',
      'mcp_servers',
      'metadata',
      'output_config',
      'service_tier',
      'unknown',
    ])
  })

  test.each([
    [{ metadata: { user_id: 'u' } }, { endUser: { id: 'u', field: 'metadata' } }, []],
    [{ metadata: { user_id: 'u', a: 1 } }, { endUser: { id: 'u', field: 'metadata' } }, ['metadata']],
    [{ metadata: { user_id: 'u'.repeat(65) } }, {}, ['metadata']],
    [{ metadata: { user_id: null } }, {}, []],
    [{ metadata: {}, service_tier: 'auto' }, {}, []],
    [{ service_tier: 'standard_only' }, { isStandardTier: true }, []],
  ])('the user and the service tier of a messages request are decoded: %j', (fields, expected, left) => {
    const { conversation, dropped } = decoded(fields)
    const { endUser, isStandardTier } = conversation
    expect({ endUser, isStandardTier }).toEqual(expected)
    expect(dropped).toEqual(left)
  })

  const user = (block: object) => ({ messages: [{ role: 'user', content: [block] }] })
  test.each([
    ['messages[0].role', { messages: [{ role: 'narrator', content: 'x' }] }],
    ['messages[0].content[0].source.type', user({ type: 'image', source: { type: 'file', file_id: 'f' } })],
    [
      'messages[0].content[0].source.type',
      user({ type: 'document', source: { type: 'file', file_id: 'f' } }),
    ],
    ['messages[0].content[0].source', user({ type: 'document' })],
    ['messages[0].content[0].source.data', user({ type: 'document', source: { type: 'text' } })],
    [
      'messages[0].content[0].source.content[0].type',
      user({ type: 'document', source: { type: 'content', content: [{ type: 'x' }] } }),
    ],
    ['messages[0].content[0].type', user({ type: 'tool_use', id: 'a', name: 'f', input: {} })],
    [
      'messages[0].content[0].type',
      { messages: [{ role: 'assistant', content: [{ type: 'tool_result', tool_use_id: 'a' }] }] },
    ],
    ['tool_choice.type', { tools: [{ name: 'f', input_schema: {} }], tool_choice: { type: 'odd' } }],
    ['thinking.type', { thinking: { type: 'odd' } }],
    ['output_config.effort', { output_config: { effort: 'odd' } }],
    [
      'system[0].type',
      { system: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: '' } }] },
    ],
  ])('an invalid messages request is refused with the path of the error: %s', (path, fields) => {
    expect(refusal(() => decoded(fields))).toContain(`Invalid '${path}': `)
  })
})

describe('writing a messages request', () => {
  test("an encoded messages request has the upstream's model, and 8192 max_tokens if no maximum is given", () => {
    expect(encode({}).text).toBe(
      '{"model":"up","max_tokens":8192,"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}',
    )
    expect(encode({ maxTokens: 7, stream: true }).body).toMatchObject({ max_tokens: 7, stream: true })
  })

  test('consecutive turns of one role are encoded as one messages turn, in which tool results are first', () => {
    const { body } = encode({
      turns: [
        say('user', words('a')),
        say('user', words('b')),
        say('assistant', call('x'), call('y')),
        say('user', words('beside')),
        say('user', answer('x')),
        say('user', answer('y')),
      ],
    })
    expect(body.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
    expect(body.messages[2]?.content).toEqual([
      { type: 'tool_result', tool_use_id: 'x', content: 'r' },
      { type: 'tool_result', tool_use_id: 'y', content: 'r' },
      { type: 'text', text: 'beside' },
    ])
  })

  test('an encoded messages request begins with a user turn, and ends with one if the conversation did', () => {
    const roles = (...turns: Turn[]) =>
      encode({ turns }).body.messages.map(({ role, content }) => [role, content[0]?.['text']])
    expect(roles(say('assistant', words('a')))).toEqual([
      ['user', '...'],
      ['assistant', 'a'],
    ])
    expect(roles(say('user', words('')))).toEqual([['user', '...']])
    expect(roles(say('user', words('q')), say('assistant', words('a')), say('user', words(' \n')))).toEqual([
      ['user', 'q'],
      ['assistant', 'a'],
      ['user', '...'],
    ])
    expect(roles()).toEqual([['user', '...']])
  })

  test('an encoded messages request has no empty assistant turns, and no blocks of blank text', () => {
    const { body } = encode({
      turns: [say('user', words('a')), say('assistant', words('')), say('user', words(''), words('b'))],
      system: [words('') as never, { kind: 'text', text: 'S' }],
    })
    expect(body.messages).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
      },
    ])
    expect(body['system']).toEqual([{ type: 'text', text: 'S' }])
  })

  test('the beginning of an answer in an encoded messages request does not end in white space', () => {
    const { body } = encode({ turns: [say('user', words('a')), say('assistant', words('{ \n'))] })
    expect(body.messages[1]?.content).toEqual([{ type: 'text', text: '{' }])
  })

  test('the input of a tool call keeps its original text in an encoded messages request', () => {
    const input = '{ "b": 9007199254740993, "2": 1.0,"1":"\\u00e9" }'
    const turns = [say('user', words('a')), say('assistant', call('x', input))]
    expect(encode({ turns }).text).toContain(`{"type":"tool_use","id":"x","name":"f","input":${input}}`)
  })

  test.each(['', 'null', ' null\n', '""'])(
    'the empty input of a tool call is encoded as an empty object in a messages request: %j',
    (input) => {
      const turns = [say('user', words('a')), say('assistant', call('y', input))]
      expect(encode({ turns }).text).toContain('{"type":"tool_use","id":"y","name":"f","input":{}}')
    },
  )

  test.each(['not json', '[]', '"x"', '5', '{"a":', 'nul', '{"a":1} {}'])(
    'the input of a tool call that is not an object is encoded as its text in raw_arguments: %s',
    (input) => {
      const turns = [say('user', words('a')), say('assistant', call('call_1', input))]
      expect(encode({ turns }).body.messages[1]?.content[0]).toMatchObject({
        input: { raw_arguments: input },
      })
    },
  )

  test('a messages request contains only thinking that messages itself signed', () => {
    const { body, dropped } = encode({
      turns: [
        say('user', words('a')),
        say(
          'assistant',
          { kind: 'thinking', text: 'hm', proof: { protocol: 'messages', value: 's' } },
          { kind: 'thinking', text: 'unsigned' },
          { kind: 'thinking', text: 'foreign', proof: { protocol: 'chat', value: 's' } },
          { kind: 'opaque', protocol: 'messages', value: { type: 'redacted_thinking', data: 'x' } },
          { kind: 'opaque', protocol: 'chat', value: { type: 'odd' } },
          words('b'),
        ),
        say('user', words('c')),
      ],
    })
    expect(body.messages[1]?.content).toEqual([
      { type: 'thinking', thinking: 'hm', signature: 's' },
      { type: 'redacted_thinking', data: 'x' },
      { type: 'text', text: 'b' },
    ])
    expect(dropped).toEqual(['content', 'reasoning_content'])
  })

  test('media in a messages request are written as images or documents, by their type', () => {
    const inline = (mediaType: string, data = 'AA==', name?: string): Part => ({
      kind: 'media',
      source: { kind: 'inline', mediaType, data },
      ...(name !== undefined && { name }),
    })
    const { body } = encode({
      turns: [
        say(
          'user',
          inline('image/webp', 'AA==', 'ignored'),
          inline('application/pdf', 'AA==', 'a.pdf'),
          inline('audio/mpeg'),
          inline('text/plain; charset=utf-8', Buffer.from('Zeile ü').toString('base64')),
          { kind: 'media', source: { kind: 'url', url: 'u', mediaType: 'image/png' }, cache: { ttl: '5m' } },
        ),
      ],
    })
    expect(body.messages[0]?.content).toEqual([
      { type: 'image', source: { type: 'base64', media_type: 'image/webp', data: 'AA==' } },
      {
        type: 'document',
        source: { type: 'base64', media_type: 'application/pdf', data: 'AA==' },
        title: 'a.pdf',
      },
      { type: 'document', source: { type: 'base64', media_type: 'audio/mpeg', data: 'AA==' } },
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'Zeile ü' } },
      { type: 'image', source: { type: 'url', url: 'u' }, cache_control: { type: 'ephemeral', ttl: '5m' } },
    ])
    expect(
      messagesCodec.mustFetch({ kind: 'media', source: { kind: 'url', url: 'u', mediaType: 'image/*' } }),
    ).toBe(true)
  })

  test('tools in an encoded messages request always have a schema, which keeps the content of a given one', () => {
    const schema = {
      type: 'object',
      properties: {},
      $defs: { a: { type: 'string' } },
      additionalProperties: false,
    }
    const { body, dropped } = encode({
      tools: [
        { ...TOOL, schema: undefined },
        { ...TOOL, schema: '{"properties":{"a":{}}}' },
        { ...TOOL, schema: JSON.stringify(schema), description: 'd', strict: true, cache: { ttl: '1h' } },
      ],
      webSearch: { maxUses: 5, location: { country: 'DE' } },
    })
    expect(body['tools']).toEqual([
      { name: 'f', input_schema: { type: 'object', properties: {} } },
      { name: 'f', input_schema: { type: 'object', properties: { a: {} } } },
      {
        name: 'f',
        description: 'd',
        input_schema: schema,
        strict: true,
        cache_control: { type: 'ephemeral', ttl: '1h' },
      },
      {
        type: 'web_search_20250305',
        name: 'web_search',
        max_uses: 5,
        user_location: { type: 'approximate', country: 'DE' },
      },
    ])
    expect(dropped).toEqual([])
  })

  const off = { disable_parallel_tool_use: true }
  test.each([
    [undefined, undefined, undefined],
    [undefined, true, { type: 'auto' }],
    [undefined, false, { type: 'auto', ...off }],
    [{ kind: 'auto' }, undefined, { type: 'auto' }],
    [{ kind: 'auto' }, false, { type: 'auto', ...off }],
    [{ kind: 'any' }, undefined, { type: 'any' }],
    [{ kind: 'any' }, true, { type: 'any' }],
    [{ kind: 'any' }, false, { type: 'any', ...off }],
    [{ kind: 'none' }, undefined, { type: 'none' }],
    [{ kind: 'none' }, false, { type: 'none' }],
    [{ kind: 'tool', name: 'f' }, undefined, { type: 'tool', name: 'f' }],
    [{ kind: 'tool', name: 'f' }, false, { type: 'tool', name: 'f', ...off }],
  ] as const)(
    'an encoded messages request states the tool choice %j and whether parallel calls are allowed: %j',
    (toolChoice, parallelTools, expected) => {
      expect(encode({ tools: [TOOL], toolChoice, parallelTools }).body['tool_choice']).toEqual(expected)
      expect(encode({ toolChoice, parallelTools }).body['tool_choice']).toBeUndefined()
    },
  )

  test('stop sequences that messages upstreams refuse are left out and reported as dropped', () => {
    const { body, dropped } = encode({ stop: ['END', '\n', '', ' x'] })
    expect(body['stop_sequences']).toEqual(['END', ' x'])
    expect(dropped).toEqual(['stop'])
    expect(encode({ stop: ['\n'] }).body['stop_sequences']).toBeUndefined()
  })
})

describe('messages requests that are read and written', () => {
  const name = fc.stringMatching(/^[a-z_]{1,8}$/)
  const word = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }).filter((s) => s.trim() === s)
  const cache = fc.constantFrom(
    '',
    ',"cache_control":{"type":"ephemeral"}',
    ',"cache_control":{"type":"ephemeral","ttl":"1h"}',
  )
  const input = fc.constantFrom(
    '{}',
    '{"b":9007199254740993,"2":1.0,"1":-0}',
    '{ "q" : "\\u00e9\\n" , "q": 1e3 }',
    '{"n":{"z":[1,{"a":null}]}}',
  )
  const text = fc.tuple(word, cache).map(([t, c]) => `{"type":"text","text":${JSON.stringify(t)}${c}}`)
  const image = cache.map(
    (c) => `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}${c}}`,
  )
  const pdf = cache.map(
    (c) =>
      `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AA=="},"title":"t"${c}}`,
  )
  const unknown = name.map((n) => `{"type":"new_${n}","id":12345678901234567890,"deep":{"b":1,"a":[]}}`)
  const tool = fc
    .tuple(name, input, cache)
    .map(([n, i, c]) => `{"type":"tool_use","id":"toolu_${n}","name":"${n}","input":${i}${c}}`)
  const thought = word.map(
    (t) => `{"type":"thinking","thinking":${JSON.stringify(t)},"signature":"c2ln/+=="}`,
  )
  const result = fc
    .tuple(
      name,
      fc.oneof(
        fc.constant(''),
        word.map((t) => `,"content":${JSON.stringify(t)}`),
        fc
          .array(fc.oneof(image, unknown), { minLength: 1, maxLength: 2 })
          .map((b) => `,"content":[${b.join(',')}]`),
      ),
      fc.constantFrom('', ',"is_error":true'),
      cache,
    )
    .map(
      ([n, content, error, c]) => `{"type":"tool_result","tool_use_id":"toolu_${n}"${content}${error}${c}}`,
    )
  const userTurn = fc
    .tuple(
      fc.array(result, { maxLength: 2 }),
      fc.array(fc.oneof(text, image, pdf, unknown), { minLength: 1, maxLength: 3 }),
    )
    .map(([results, others]) => `{"role":"user","content":[${[...results, ...others].join(',')}]}`)
  const assistantTurn = fc
    .array(fc.oneof(text, thought, tool, unknown), { minLength: 1, maxLength: 3 })
    .map((blocks) => `{"role":"assistant","content":[${blocks.join(',')}]}`)
  const messages = fc
    .tuple(fc.array(fc.tuple(userTurn, assistantTurn), { maxLength: 3 }), userTurn)
    .map(([pairs, last]) => `[${[...pairs.flat(), last].join(',')}]`)
  const optional = (...values: string[]) => fc.constantFrom('', ...values)
  const tools = fc.tuple(
    fc.constant(
      ',"tools":[{"name":"f","description":"d","input_schema":{"type":"object","properties":{"n":{"maximum":9007199254740993}},"$defs":{},"additionalProperties":false},"cache_control":{"type":"ephemeral"}}',
    ),
    optional(',{"type":"web_search_20250305","name":"web_search","max_uses":3}'),
    fc.constant(']'),
    optional(
      ',"tool_choice":{"type":"auto"}',
      ',"tool_choice":{"type":"auto","disable_parallel_tool_use":true}',
      ',"tool_choice":{"type":"none"}',
    ),
  )
  const sampling = fc.oneof(
    fc.tuple(
      optional(',"thinking":{"type":"disabled"}'),
      optional(',"temperature":0.5'),
      optional(',"top_p":0.9'),
      optional(',"top_k":7'),
    ),
    fc.constant([',"thinking":{"type":"adaptive"}']),
    fc.constant([',"thinking":{"type":"adaptive"},"output_config":{"effort":"low"}']),
  )
  const request = fc
    .tuple(
      fc.oneof(
        fc.constant(''),
        fc.array(text, { minLength: 1, maxLength: 2 }).map((blocks) => `,"system":[${blocks.join(',')}]`),
      ),
      messages,
      fc.oneof(
        fc.constant(''),
        tools.map((pieces) => pieces.join('')),
      ),
      sampling.map((pieces) => pieces.join('')),
      optional(',"stop_sequences":["a","b"]'),
      optional(',"stream":true'),
    )
    .map(
      ([system, turns, offered, sampled, stop, stream]) =>
        `{"model":"m","max_tokens":5000${system},"messages":${turns}${offered}${sampled}${stop}${stream}}`,
    )

  test('a messages request is unchanged after decoding and encoding: cache marks, signatures, large integers, key order', () => {
    fc.assert(
      fc.property(request, (written) => {
        const { conversation, dropped } = decode(written)
        expect(dropped).toEqual([])
        const upstream = upstreamOf(written.includes('"adaptive"') ? 'claude-opus-5' : 'm')
        const again = messagesCodec.encodeRequest(conversation, { ...upstream, name: 'm' }, new Set())
        expect(again.toString()).toBe(written)
      }),
      { numRuns: lawRuns(500) },
    )
  })
})

describe('recorded traffic', () => {
  const folder = process.env['RECORDINGS']
  const names = folder ? readdirSync(join(folder, 'requests')).filter((n) => n.startsWith('messages--')) : []

  test(`${names.length} recorded messages requests keep every message when they are decoded and encoded`, () => {
    for (const recorded of names) {
      const written = readFileSync(join(folder ?? '', 'requests', recorded), 'utf8')
      const { conversation } = decode(written)
      const again = messagesCodec.encodeRequest(conversation, upstreamOf('m'), new Set())
      readMessagesRequest(scanObject(again))
      const before = JSON.parse(written) as { messages: { role: string }[] }
      const after = JSON.parse(again.toString()) as { messages: { role: string }[] }
      const spoken = before.messages.filter(({ role }) => role !== 'system')
      expect(after.messages.length, recorded).toBe(spoken.length)
    }
    expect(names.length).toBeGreaterThanOrEqual(0)
  })
})
