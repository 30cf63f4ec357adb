import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { WireError } from '../../wire-error.ts'
import { scanObject } from '../../json/json-scan.ts'
import { type MessagesRequest, readMessagesRequest } from './request.ts'

const MINIMAL = {
  model: 'claude-x',
  max_tokens: 10,
  messages: [{ role: 'user', content: 'canary-prompt' }],
}

function read(fields: object): MessagesRequest {
  return readMessagesRequest(scanObject(Buffer.from(JSON.stringify({ ...MINIMAL, ...fields }))))
}

function refusal(fields: object): string {
  try {
    read(fields)
  } catch (error) {
    expect((error as WireError).code).toBe('invalid_request')
    return (error as WireError).message
  }
  return 'accepted'
}

const says = (...content: unknown[]) => [{ role: 'user', content }]
const image = (source: unknown) => says({ type: 'image', source })

/** The rows of `docs/api.md: Messages`, each with values that are accepted and values that are refused. */
const TABLE: Record<string, { good: readonly unknown[]; bad: readonly unknown[] }> = {
  model: { good: ['claude-x', 'a/b:c'], bad: ['', null, 1, ['x'], 'a\nb', 'm'.repeat(257)] },
  max_tokens: { good: [0, 1, 10_000_000], bad: [null, -1, 1.5, '10', true, 10_000_001] },
  messages: {
    good: [
      [{ role: 'user', content: '' }],
      [{ role: 'somebody', content: 'x' }],
      says(),
      says({ type: 'text', text: 'x', cache_control: { type: 'ephemeral', ttl: '1h' } }),
      says({ type: 'text', text: 'x', cache_control: null }),
      image({ type: 'base64', media_type: 'image/png', data: 'AA==' }),
      image({ type: 'url', url: 'https://a/b' }),
      image({ type: 'new_kind' }),
      says({ type: 'tool_use', id: 'a', name: 'f', input: {} }),
      says({ type: 'tool_use', id: 'a', name: 'f', input: null }),
      says({ type: 'tool_use', id: 'a', name: 'f', input: '' }),
      says({ type: 'tool_result', tool_use_id: 'a' }),
      says({ type: 'tool_result', tool_use_id: 'a', content: null }),
      says({ type: 'tool_result', tool_use_id: 'a', content: 'x' }),
      says({
        type: 'tool_result',
        tool_use_id: 'a',
        content: [{ type: 'text', text: 'x' }, { type: 'odd' }],
      }),
      says({ type: 'thinking', thinking: 'hm', signature: 's' }, { type: 'redacted_thinking', data: 'x' }),
      says({ type: 'unheard_of' }),
    ],
    bad: [
      [],
      null,
      {},
      'hi',
      [1],
      [null],
      [{}],
      [{ role: 'user' }],
      [{ role: 1, content: 'x' }],
      [{ role: 'user', content: null }],
      [{ role: 'user', content: 1 }],
      [{ role: 'user', content: {} }],
      says('x'),
      says({}),
      says({ type: 1 }),
      says({ type: 'text' }),
      says({ type: 'text', text: null }),
      says({ type: 'text', text: 'x', cache_control: 'ephemeral' }),
      says({ type: 'image' }),
      image('AA=='),
      image({ type: 'base64', data: 'AA==' }),
      image({ type: 'base64', media_type: 'image/png' }),
      image({ type: 'url' }),
      image({}),
      says({ type: 'tool_use', name: 'f', input: {} }),
      says({ type: 'tool_use', id: 'a', input: {} }),
      says({ type: 'tool_use', id: 'a', name: 'f' }),
      says({ type: 'tool_use', id: 'a', name: 'f', input: '{}' }),
      says({ type: 'tool_result', content: 'x' }),
      says({ type: 'tool_result', tool_use_id: 1 }),
      says({ type: 'tool_result', tool_use_id: 'a', content: 1 }),
      says({ type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text' }] }),
      says({ type: 'tool_result', tool_use_id: 'a', content: ['x'] }),
    ],
  },
  system: {
    good: [
      '',
      'x',
      [],
      [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral' } }],
      [{ type: 'odd' }],
    ],
    bad: [
      1,
      {},
      ['x'],
      [{}],
      [{ type: 'text' }],
      [{ type: 'text', text: 1 }],
      [{ type: 'text', text: '', cache_control: 1 }],
    ],
  },
  stream: { good: [true, false], bad: ['true', 0, {}] },
  temperature: { good: [0, 0.5, 1], bad: [-0.1, 1.1, '1', true] },
  top_p: { good: [0, 0.5, 1], bad: ['1', [1], true] },
  top_k: { good: [0, 40], bad: [1.5, '1', {}] },
  stop_sequences: { good: [[], ['a', 'b', 'c', 'd', 'e']], bad: ['x', [1], [null], {}] },
  tools: {
    good: [
      [],
      [{ name: 'f', input_schema: { type: 'object' } }],
      [{ type: 'custom', name: 'f', description: 'd', input_schema: {} }],
      [{ type: 'web_search_20250305', name: 'web_search' }],
      [{ type: 'mcp_toolset' }],
    ],
    bad: [
      {},
      'x',
      [1],
      [{}],
      [{ name: 'f' }],
      [{ name: 1, input_schema: {} }],
      [{ name: 'f', input_schema: 'x' }],
      [{ name: 'f', input_schema: {}, description: 1 }],
      [{ type: 1, name: 'f' }],
      [{ type: 'custom', name: 'f' }],
    ],
  },
  tool_choice: {
    good: [
      { type: 'auto' },
      { type: 'any', disable_parallel_tool_use: true },
      { type: 'tool', name: 'f' },
      { type: 'new' },
    ],
    bad: [
      'auto',
      {},
      [],
      { type: 1 },
      { type: 'tool' },
      { type: 'tool', name: 1 },
      { type: 'auto', disable_parallel_tool_use: 1 },
    ],
  },
  thinking: {
    good: [
      { type: 'enabled', budget_tokens: 1024 },
      // Refused by Anthropic, but not by each provider.
      { type: 'enabled' },
      { type: 'disabled' },
      { type: 'adaptive', display: 'x' },
      { type: 'new' },
    ],
    bad: [
      true,
      'enabled',
      {},
      { type: 'enabled', budget_tokens: '1' },
      { type: 'enabled', budget_tokens: 0 },
      { type: 'new', budget_tokens: 1.5 },
    ],
  },
  metadata: { good: [{}, { user_id: 'u' }], bad: ['x', [], 1] },
  cache_control: { good: [{ type: 'ephemeral' }, { type: 'new' }], bad: ['x', {}, { type: 1 }] },
  service_tier: { good: ['auto', 'new'], bad: [1, true, {}] },
  inference_geo: { good: ['eu'], bad: [1, {}] },
  speed: { good: ['fast'], bad: [1, {}] },
}

const REQUIRED = new Set(['model', 'max_tokens', 'messages'])

describe('the fields of a messages request', () => {
  test.each(Object.entries(TABLE))(
    'the messages field %s accepts the documented values and refuses others',
    (field, { good, bad }) => {
      for (const value of good) expect(refusal({ [field]: value }), JSON.stringify(value)).toBe('accepted')
      for (const value of bad) {
        const message = refusal({ [field]: value })
        expect(message, JSON.stringify(value)).toContain(`'${field}`)
        expect(message).toMatch(/^'\w+' is required\.$|^Invalid '[\w.[\]]+': expected .+, got .+\.$/)
        expect(message).not.toContain('AA==')
      }
      if (!REQUIRED.has(field)) expect(refusal({ [field]: null })).toBe('accepted')
    },
  )

  test.each([...REQUIRED])('a messages request without the field %s is refused', (field) => {
    expect(refusal({ [field]: undefined })).toBe(`'${field}' is required.`)
  })

  test('unknown fields of a messages request are accepted, whatever they contain', () => {
    expect(refusal({ container: 1, mcp_servers: 'x', output_config: { effort: 'odd' }, x: null })).toBe(
      'accepted',
    )
  })

  test('the refusal of a messages request names the path of the field, and shows nothing that may be a prompt', () => {
    expect(refusal({ messages: says({ type: 'text', text: 'a' }, { type: 'text', text: ['canary'] }) })).toBe(
      "Invalid 'messages[0].content[1].text': expected a string, got an array.",
    )
    expect(
      refusal({
        messages: says({
          type: 'tool_result',
          tool_use_id: 'a',
          content: [{ type: 'image', source: { type: 'url' } }],
        }),
      }),
    ).toBe("Invalid 'messages[0].content[0].content[0].source.url': expected a string, got nothing.")
  })
})

describe('the parsed messages request', () => {
  test('a parsed messages request has the values that were sent', () => {
    expect(read({})).toMatchObject({
      model: 'claude-x',
      stream: false,
      maxTokens: 10,
      thinking: false,
    })
    expect(read({}).providerTools).toBeUndefined()
    expect(
      read({
        stream: true,
        thinking: { type: 'adaptive' },
        tools: [{ type: 'web_search_20260209', name: 'web_search', max_uses: 3 }],
        mcp_servers: [{ type: 'url', url: 'https://mcp.example.com', name: 'm' }],
      }),
    ).toMatchObject({
      stream: true,
      thinking: true,
      providerTools: { tools: [{ type: 'web_search_20260209', maxUses: 3 }, { type: 'mcp_toolset' }] },
    })
    expect(read({ thinking: { type: 'disabled' } }).thinking).toBe(false)
    expect(read({ thinking: { type: 'enabled', budget_tokens: 1024 } }).thinking).toBe(true)
  })
})

describe('recorded traffic', () => {
  const folder = process.env['RECORDINGS']
  const names = folder
    ? readdirSync(join(folder, 'requests')).filter((name) => name.startsWith('messages--'))
    : []

  test(`${names.length} recorded messages requests are accepted, and each has an upper bound of its tokens`, () => {
    for (const name of names) {
      const bytes = readFileSync(join(folder ?? '', 'requests', name))
      const request = readMessagesRequest(scanObject(bytes))
      expect(request.promptBound, name).toBeGreaterThan(0)
    }
    expect(names.length).toBeGreaterThanOrEqual(0)
  })
})
