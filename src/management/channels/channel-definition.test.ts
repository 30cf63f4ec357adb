import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { OPERATOR } from '../authority.ts'
import { readInput } from '../input-fields.ts'
import { applyChannelChange } from './change-channels.ts'
import { channelDefinition, parseKeyLines } from './channel-definition.ts'
import { channelFields, type PartialChannelFields } from './channel-fields.ts'
import { fieldsOfStoredChannel } from './channel-object.ts'
import {
  CHANNEL_TYPES,
  channelType,
  typeOfDeclaredChannel,
  removeApiVersion,
  addApiVersion,
} from './channel-types.ts'

const word = fc.stringMatching(/^[a-z][a-z0-9.-]{0,11}$/)
const words = fc.uniqueArray(word, { minLength: 1, maxLength: 4 })
const json = fc.jsonValue({ maxDepth: 2, noUnicodeString: false })
const others = fc.dictionary(fc.stringMatching(/^x_[a-z]{1,8}$/), json, { maxKeys: 4 })
const mapping = fc.dictionary(word, word, { maxKeys: 3 })

/** All fields that mean something here, and some that do not. */
const FIELDS = {
  name: word,
  type: fc.constantFrom(...CHANNEL_TYPES.map(({ type }) => type)),
  protocol: fc.uniqueArray(fc.constantFrom('chat', 'messages', 'responses', 'gemini', 'rerank'), {
    minLength: 1,
  }),
  base_url: word.map((host) => `https://${host}.example`),
  models: words.map((names) => names.join(',')),
  group: words.map((names) => names.join(',')),
  model_mapping: mapping.map((map) => JSON.stringify(map)),
  header_override: mapping.map((map) => JSON.stringify(map)),
  setting: fc
    .record({ pass_through_body_enabled: fc.boolean(), proxy: word, system_prompt: fc.string() })
    .map((setting) => JSON.stringify(setting)),
  settings: fc
    .record({
      allow_service_tier: fc.boolean(),
      allow_safety_identifier: fc.boolean(),
      allow_include_obfuscation: fc.boolean(),
      allow_inference_geo: fc.boolean(),
      allow_speed: fc.boolean(),
      allow_cache_control: fc.boolean(),
      allow_models: fc.boolean(),
      allow_route: fc.boolean(),
      allow_provider: fc.boolean(),
      allow_plugins: fc.boolean(),
      allow_transforms: fc.boolean(),
      allow_search_parameters: fc.boolean(),
      allow_extra_body: fc.boolean(),
      allow_session: fc.boolean(),
      allow_metadata: fc.boolean(),
      allow_user: fc.boolean(),
      allow_prompt_cache_key: fc.boolean(),
      allow_prompt_cache_options: fc.boolean(),
      allow_prompt_cache_retention: fc.boolean(),
      allow_verbosity: fc.boolean(),
      allow_store: fc.boolean(),
      disable_store: fc.boolean(),
      vertex_key_type: word,
    })
    .map((settings) => JSON.stringify(settings)),
  priority: fc.integer({ min: -1000, max: 1000 }),
  weight: fc.nat(1000),
  status: fc.constantFrom(1, 2),
  tag: fc.option(word),
  test_model: fc.option(word),
  project: fc.option(word),
  service_tier: fc.option(fc.constantFrom('flex', 'fast', 'auto')),
  cache_diagnostics: fc.boolean(),
  websocket: fc.constantFrom(null, false),
  batches: fc.constantFrom(null, true, false, 'only'),
  repair: fc.boolean(),
  auto_ban: fc.constantFrom(0, 1),
  status_code_mapping: mapping.map((map) => JSON.stringify(map)),
  param_override: fc.option(mapping.map((map) => JSON.stringify(map))),
}
const sent = fc.record(FIELDS)
const some = fc.record(FIELDS, { requiredKeys: ['name', 'type', 'protocol'] })

/** Parses the fields that are JSON texts. */
const meant = (fields: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      ['model_mapping', 'header_override', 'setting', 'settings'].includes(name)
        ? JSON.parse(String(value))
        : value,
    ]),
  )

test('every field of a channel sent over HTTP is returned unchanged, also one that the gateway does not use', () => {
  fc.assert(
    fc.property(sent, others, (given, more) => {
      const channel = channelDefinition(readInput(channelFields, { ...more, ...given }), [])
      // The form in which the store returns it.
      const shown = fieldsOfStoredChannel(JSON.parse(JSON.stringify(channel)))
      expect(meant(shown)).toEqual(meant(JSON.parse(JSON.stringify({ ...more, ...given }))))
    }),
  )
})

test('a channel that is sent back as the HTTP API returned it does not change', () => {
  fc.assert(
    fc.property(some, others, (given, more) => {
      const once = channelDefinition(readInput(channelFields, { ...more, ...given }), [])
      const again = channelDefinition(readInput(channelFields, fieldsOfStoredChannel(once)), [])
      expect(again).toEqual(once)
    }),
  )
})

test('a change of an imported channel without a new address keeps its address', () => {
  const given = { name: 'a', type: 8, base_url: 'https://a.example/api', models: 'm' }
  const added = channelDefinition(readInput(channelFields, given), ['k'])
  const imported = { ...added, declared: { ...added.declared, base_url: 'https://a.example/api' } }
  const addressAfter = (change: PartialChannelFields) =>
    applyChannelChange(imported, change, OPERATOR).declared['base_url']
  expect(addressAfter({ priority: 3 })).toBe('https://a.example/api')
  expect(addressAfter({ ...fieldsOfStoredChannel(imported), priority: 3 })).toBe('https://a.example/api')
  expect(addressAfter({ base_url: 'https://a.example' })).toBe('https://a.example/v1')
  expect(addressAfter({ type: 27 })).toBe('https://a.example/api')
  expect(addressAfter({ type: 17 })).toBe('https://a.example/api/compatible-mode/v1')
})

test.each([['{"a": 1,}'], ['[1]'], ['{"__proto__": 1}'], ['5'], [{ a: 1 }], [7]])(
  'a channel that was stored with %j where a JSON object is expected now can be changed, and loses it',
  (value) => {
    const whole = channelDefinition(
      readInput(channelFields, { name: 'a', type: 1, models: 'm', tag: 't' }),
      [],
    )
    for (const field of ['param_override', 'status_code_mapping']) {
      const stored = { ...whole, family: { ...whole.family, [field]: value } }
      const shown = readInput(channelFields, fieldsOfStoredChannel(stored))
      for (const sent of [{}, shown])
        expect(applyChannelChange(stored, { ...sent, status: 2 }, OPERATOR)).toEqual({ ...whole, status: 2 })
    }
  },
)

test('a channel sent over HTTP with only the required fields has the same defaults as in gateway.yaml', () => {
  const { declared, status } = channelDefinition(
    readInput(channelFields, { name: 'a', type: 14, models: 'm', setting: null, model_mapping: '' }),
    [],
  )
  expect(status).toBe(1)
  expect(declared).toEqual({
    protocol: 'messages',
    base_url: 'https://api.anthropic.com/v1',
    models: ['m'],
    groups: ['default'],
    model_mapping: {},
    headers: {},
    allow: [],
    disable_store: false,
    pass_through: false,
  })
})

describe('an address', () => {
  test.each([
    [1, '', 'https://api.openai.com/v1'],
    [1, 'https://a.example', 'https://a.example/v1'],
    [1, 'https://a.example/', 'https://a.example/v1'],
    [1, 'https://a.example/proxy', 'https://a.example/proxy/v1'],
    [1, 'https://a.example/v1', 'https://a.example/v1'],
    [1, 'https://a.example/v1/', 'https://a.example/v1'],
    [1, 'https://a.example/v1beta/openai', 'https://a.example/v1beta/openai'],
    [1, 'https://a.example/api/paas/v4', 'https://a.example/api/paas/v4'],
    [1, 'https://v1.example', 'https://v1.example/v1'],
    [1, 'https://a.example?x', 'https://a.example?x'],
    [1, 'nonsense', 'nonsense'],
    [8, '', ''],
    [20, '', 'https://openrouter.ai/api/v1'],
    [24, '', 'https://generativelanguage.googleapis.com/v1beta'],
    [24, 'https://a.example', 'https://a.example/v1beta'],
    [24, 'https://a.example/v1', 'https://a.example/v1'],
    [27, '', 'https://api.perplexity.ai'],
    [34, '', 'https://api.cohere.ai/v1'],
    [38, '', 'https://api.jina.ai/v1'],
    [45, '', 'https://ark.cn-beijing.volces.com/api/v3'],
  ])('the address of a new-api channel of type %i with the base URL %j becomes %j', (type, given, full) => {
    const known = channelType(type)
    expect(known && addApiVersion(given, known)).toBe(full)
  })

  test.each([
    ['chat', 'https://api.openai.com/v1', 1, 'https://api.openai.com'],
    ['chat', 'https://a.example/v1', 8, 'https://a.example'],
    ['chat', 'https://a.example/v2', 8, 'https://a.example/v2'],
    ['messages', 'https://a.example/v1', 14, 'https://a.example'],
    ['rerank', 'https://api.jina.ai/v1', 38, 'https://api.jina.ai'],
    ['rerank', 'https://a.example/v1', 34, 'https://a.example'],
    ['chat', 'https://openrouter.ai/api/v1', 20, 'https://openrouter.ai/api'],
    [['chat', 'responses'], 'https://api.openai.com/v1', 1, 'https://api.openai.com'],
    [['responses', 'chat'], 'https://a.example/v1', 8, 'https://a.example'],
    ['responses', 'https://a.example/v1', 0, 'https://a.example'],
    [
      'gemini',
      'https://generativelanguage.googleapis.com/v1beta',
      24,
      'https://generativelanguage.googleapis.com',
    ],
    ['gemini', 'https://a.example/v1beta', 24, 'https://a.example'],
    [
      'chat',
      'https://generativelanguage.googleapis.com/v1beta/openai',
      8,
      'https://generativelanguage.googleapis.com/v1beta/openai',
    ],
  ] as const)('the channel of the file, %s %s, is type %i at %s', (protocol, url, type, bare) => {
    const found = typeOfDeclaredChannel([protocol].flat(), url, 'generic')
    expect([found?.type, removeApiVersion(url, found)]).toEqual([type, bare])
  })
})

test('the keys of a channel are sent as text with one key per line; spaces, empty and repeated lines are ignored', () => {
  expect(parseKeyLines(' a \r\n\nb\na')).toEqual(['a', 'b'])
  expect(parseKeyLines('')).toEqual([])
  expect(parseKeyLines(null)).toEqual([])
  expect(() => parseKeyLines(' \n')).toThrow('key: expected at least one key')
})
