import { describe, expect, test } from 'vitest'
import { chargeOfCall } from '../domain/charge.ts'
import { OPTIONS } from '../domain/options.ts'
import { chargeRateOf } from '../domain/price.ts'
import { NO_USAGE } from '@sluice/wire/usage'
import { type ConfigFileContent, readFileContent } from './read-sections.ts'
import { parseYamlDocument } from './document.ts'

function read(text: string, env: Record<string, string> = {}): ConfigFileContent {
  const { content, diagnostics } = readFileContent(
    parseYamlDocument(text, (name) => new Map(Object.entries(env)).get(name)),
  )
  expect(diagnostics).toEqual([])
  if (!content) throw new Error('the file was refused without a diagnostic')
  return content
}

/** The values of a channel's settings that it does not declare. */
const UNSTATED = {
  service_tier: null,
  provider: 'generic',
  api_version: null,
  region: null,
  project: null,
  location: null,
  proxy: null,
  system_prompt: '',
  override: { set: new Map(), default: new Map(), remove: [] },
  status_mapping: new Map(),
  probe: null,
}
/** `options.test.ts` compares these with the documented ones. */
const DEFAULTS_OF_ROWS = Object.fromEntries(
  Object.entries(OPTIONS).flatMap(([name, row]) => ('default' in row ? [[name, row.default]] : [])),
)
const NO_LIMIT = { requests: 0, tokens: 0, windowMs: 60_000 }

describe('the documented defaults', () => {
  test.each(['', '# nothing\n', 'options:\ngroups: null\nmodels: {}\nchannels:\nusers: []\n', 'null'])(
    'a gateway.yaml without settings has the documented defaults: %j',
    (text) => {
      const content = read(text)
      expect(content.options).toEqual({
        ...DEFAULTS_OF_ROWS,
        prices_file: '',
        trusted_proxies: [],
        metrics_token: '',
        admin_listen: '',
        affinity: { enabled: true, most: 100_000, cache_key: true },
        batches: { poll: 10_000, poll_most: 300_000, most: 100, parallel: 8 },
        files: { store: { kind: 'folder', path: '' }, keep: 30 * 86_400_000, most: 10_000_000_000 },
        idempotency: { keep: 86_400_000, most_answer: 33_554_432 },
        media: { allow_private_networks: false, max_bytes: 20_971_520, timeout: 10_000 },
        cors: { origins: [] },
        websocket: { enabled: true, idle: 900_000, age: 3_600_000, ping: 30_000 },
        base_path: '',
        public_url: '',
      })
      expect(content.rateLimits).toEqual({
        global: { requests: 180, tokens: 0, windowMs: 180_000 },
        relay: NO_LIMIT,
        search: { requests: 10, tokens: 0, windowMs: 60_000 },
        critical: { requests: 20, tokens: 0, windowMs: 1_200_000 },
        key: NO_LIMIT,
        console: { requests: 600, tokens: 0, windowMs: 60_000 },
      })
      expect(content.login).toEqual({ password: true, oidc: [] })
      expect(content.groups).toEqual(
        new Map([['default', { name: 'default', ratio: { digits: 1n, scale: 0 }, open: true, guards: [] }]]),
      )
      expect([content.models.size, content.channels, content.users, content.alerts, content.guards]).toEqual([
        0,
        [],
        [],
        [],
        [],
      ])
    },
  )
})

describe('rate limits', () => {
  test('rate limits that the section rate_limits of gateway.yaml does not name are off', () => {
    const { rateLimits } = read('rate_limits:\n  search: { requests: 5 }\n  critical:\n')
    expect(rateLimits.search).toEqual({ requests: 5, tokens: 0, windowMs: 60_000 })
    expect(
      [rateLimits.global, rateLimits.relay, rateLimits.critical, rateLimits.key].map(
        ({ requests }) => requests,
      ),
    ).toEqual([0, 0, 0, 0])
  })

  test('rate_limits.key in gateway.yaml may limit tokens within a window', () => {
    expect(read('rate_limits: { key: { tokens: 1000, window: 1h } }').rateLimits.key).toEqual({
      requests: 0,
      tokens: 1000,
      windowMs: 3_600_000,
    })
  })
})

describe('the content log', () => {
  test('without a section content_log no content is stored, and nobody may read the content of others', () => {
    expect(read('').contentLog).toEqual({
      what: 'none',
      sample: 1,
      keepMs: 30 * 86_400_000,
      store: { kind: 'database' },
      readers: undefined,
    })
  })

  test('content_log.store is the database or a bucket, by default at the Amazon endpoint of its region', () => {
    expect(read('').contentLog.store).toEqual({ kind: 'database' })
    expect(read('content_log: { store: "s3://said/a/b.c/" }').contentLog.store).toEqual({
      kind: 's3',
      bucket: 'said',
      prefix: 'a/b.c',
      endpoint: 'https://s3.us-east-1.amazonaws.com',
      region: 'us-east-1',
    })
    const own = '{ store: "s3://said", endpoint: "http://127.0.0.1:9000/s3/", region: eu-central-1 }'
    expect(read(`content_log: ${own}`).contentLog.store).toMatchObject({
      prefix: '',
      endpoint: 'http://127.0.0.1:9000/s3',
      region: 'eu-central-1',
    })
  })

  test('groups, users and tokens may have their own content_log, whose keep time is stored in whole seconds', () => {
    const { contentLog, groups, users } = read(
      'content_log: { what: metadata, sample: 0.5, keep: 2d, readers: 100 }\n' +
        'groups: { vip: { content_log: { what: full } } }\n' +
        'users: [{ username: ann, content_log: { keep: 90s },\n' +
        '  tokens: [{ name: t, unlimited_quota: true, content_log: { what: none, sample: 0 } }] }]',
    )
    expect(contentLog).toMatchObject({ what: 'metadata', sample: 0.5, keepMs: 172_800_000, readers: 100 })
    expect(groups.get('vip')?.contentLog).toEqual({ what: 'full' })
    expect(users[0]).toMatchObject({ content_log_what: '', content_log_sample: null, content_log_keep: 90 })
    expect(users[0]?.tokens[0]).toMatchObject({
      content_log_what: 'none',
      content_log_sample: 0,
      content_log_keep: null,
    })
  })

  test('the shares of calls that are logged, and that a guard checks, may come from variables', () => {
    const sample = '{ sample: "${SHARE}" }'
    const { contentLog, groups, users, guards } = read(
      `content_log: ${sample}\n` +
        `groups: { vip: { content_log: ${sample} } }\n` +
        `users: [{ username: ann, content_log: ${sample} }]\n` +
        'guards: [{ name: g, do: block, match: { secrets: true }, sample: "${SHARE}" }]',
      { SHARE: '0.5' },
    )
    expect([contentLog.sample, groups.get('vip')?.contentLog?.sample, guards[0]?.sample]).toEqual([
      0.5, 0.5, 0.5,
    ])
    expect(users[0]?.content_log_sample).toBe(0.5)
  })
})

describe('groups', () => {
  test('the group "default" exists in addition to the declared ones, and may be declared', () => {
    const { groups } = read('groups: { vip: { ratio: 0.8, open: false }, staff: }')
    expect([...groups.keys()]).toEqual(['default', 'vip', 'staff'])
    expect(groups.get('vip')).toEqual({
      name: 'vip',
      ratio: { digits: 8n, scale: 1 },
      open: false,
      guards: [],
    })
    expect(groups.get('staff')).toEqual({
      name: 'staff',
      ratio: { digits: 1n, scale: 0 },
      open: true,
      guards: [],
    })
    expect(read('groups: { default: { ratio: 2 } }').groups.get('default')?.ratio).toEqual({
      digits: 2n,
      scale: 0,
    })
  })

  test("groups may have the names of JavaScript's built-in properties", () => {
    expect([...read('groups: { constructor: {}, toString: {} }').groups.keys()]).toEqual([
      'default',
      'constructor',
      'toString',
    ])
  })
})

describe('prices', () => {
  const priceOf = (price: string) => read(`models: { m: { price: ${price} } }`).models.get('m')?.price

  test('cache prices that are not stated follow from input: reads a tenth, 5-minute writes 1.25 times, 1-hour writes twice', () => {
    const price = priceOf('{ input: 3, output: 15 }')
    if (!price) throw new Error('no price')
    const rate = chargeRateOf(price, { digits: 1n, scale: 0 }, 1_000_000)
    const each = (kind: 'cacheRead' | 'cacheWrite5m' | 'cacheWrite1h') =>
      chargeOfCall(rate, { ...NO_USAGE, [kind]: 1000 })
    expect([each('cacheRead'), each('cacheWrite5m'), each('cacheWrite1h')]).toEqual([300, 3750, 6000])
  })

  test("a model's tools are priced only where stated; web_search is another name of tools.web_search", () => {
    const cent = { digits: 1n, scale: 2 }
    expect(priceOf('{ input: 1, output: 1 }')?.tools).toEqual({})
    expect(priceOf('{ input: 1, output: 1, web_search: 0.01 }')?.tools).toEqual({ web_search: cent })
    expect(priceOf('{ input: 1, output: 1, tools: { web_search: 0.01, mcp: 0 } }')?.tools).toEqual({
      web_search: cent,
      mcp: { digits: 0n, scale: 0 },
    })
  })

  test('prices in gateway.yaml are read as exact decimals, however many digits they have', () => {
    const price = priceOf(
      '{ input: 0.1, output: "0.30", cache_read: 0.01234567890123456789, cache_write_5m: .5, cache_write_1h: 1e-3 }',
    )
    expect(price?.tokens).toMatchObject({
      input: { digits: 1n, scale: 1 },
      output: { digits: 30n, scale: 2 },
      cache_read: { digits: 1234567890123456789n, scale: 20 },
      cache_write_5m: { digits: 5n, scale: 1 },
      cache_write_1h: { digits: 1n, scale: 3 },
    })
  })

  test('a model may have a price per call alone, and its tokens are then free', () => {
    const price = priceOf('{ request: 0.002 }')
    expect(price?.request).toEqual({ digits: 2n, scale: 3 })
    expect(price?.tokens.input).toEqual({ digits: 0n, scale: 0 })
  })

  test('audio and images have the prices of text where the model states no price for them', () => {
    const price = priceOf('{ input: 3, output: 15, audio_input: 6, image_output: 40 }')
    const { audio_input, audio_output, image_input, image_output } = price?.tokens ?? {}
    expect([audio_input, audio_output, image_input, image_output].map((one) => Number(one?.digits))).toEqual([
      6, 15, 3, 40,
    ])
  })

  test.each([
    ['{ second: 0.0001 }', { second: { digits: 1n, scale: 4 } }],
    ['{ characters: 15 }', { characters: { digits: 15n, scale: 0 } }],
    ['{ image: 0.04 }', { image: { default: { digits: 4n, scale: 2 } } }],
    [
      '{ image: { 1024x1024: 0.04, "1024x1024/hd": "0.08", default: 0.02 } }',
      {
        image: {
          '1024x1024': { digits: 4n, scale: 2 },
          '1024x1024/hd': { digits: 8n, scale: 2 },
          default: { digits: 2n, scale: 2 },
        },
      },
    ],
  ])(
    'a model in gateway.yaml may have prices per image, character or second, but none for tokens: %s',
    (text, expected) => {
      expect(priceOf(text)).toMatchObject({ ...expected, tokens: { input: { digits: 0n } } })
    },
  )

  test("a model's audio and image prices also apply in the price tiers that state no such price", () => {
    const price = priceOf(
      '{ input: 1, output: 2, audio_input: 9, tiers: [{ above: 10, input: 3, output: 4 }, { above: 20, input: 5, output: 6, audio_input: 7 }] }',
    )
    const seen = price?.tiers.map(({ tokens }) =>
      [tokens.audio_input, tokens.image_input].map(({ digits }) => digits),
    )
    expect(seen).toEqual([
      [9n, 3n],
      [7n, 5n],
    ])
  })

  test('the cache prices of a price tier follow from the input price of that tier', () => {
    const price = priceOf(
      '{ input: 3, output: 15, cache_read: 1, tiers: [{ above: 200000, input: 6, output: 22.5 }] }',
    )
    expect(price?.tiers).toMatchObject([
      {
        above: 200_000,
        tokens: {
          input: { digits: 6n, scale: 0 },
          output: { digits: 225n, scale: 1 },
          cache_read: { digits: 6n, scale: 1 },
          cache_write_5m: { digits: 750n, scale: 2 },
          cache_write_1h: { digits: 12n, scale: 0 },
        },
      },
    ])
  })
})

describe('channels', () => {
  test('a channel needs a name, a protocol, an address and models; all other fields have defaults', () => {
    const { channels } = read(
      'channels: [{ name: a, protocol: chat, base_url: "https://a.example/v1/", models: [m] }]',
    )
    expect(channels).toEqual([
      {
        ...UNSTATED,
        name: 'a',
        protocol: ['chat'],
        base_url: 'https://a.example/v1',
        keys: [],
        models: ['m'],
        groups: ['default'],
        priority: 0,
        weight: 1,
        model_mapping: new Map(),
        allow: new Set(),
        disable_store: false,
        service_tier: null,
        pass_through: false,
        cache_diagnostics: false,
        websocket: null,
        batches: null,
        repair: false,
        headers: new Map(),
        rate_limit: NO_LIMIT,
        on_client_gone: 'cancel',
        timeouts: { connect: 5_000, first_byte: 120_000, idle: 120_000, total: 900_000 },
      },
    ])
  })

  test('a channel may list several protocols, and their order is kept', () => {
    const { channels } = read(
      'channels: [{ name: a, protocol: [responses, chat], base_url: "https://a.example/v1", models: [m] }]',
    )
    expect(channels[0]?.protocol).toEqual(['responses', 'chat'])
  })

  test('a channel accepts every field that the documentation lists', () => {
    const { channels } = read(
      `
groups: { vip: {} }
channels:
  - name: b
    protocol: [messages, responses]
    base_url: \${BASE}
    keys: ["\${KEY}", "$\${KEY}"]
    models: [m, n]
    groups: [vip]
    priority: -3
    weight: 0.5
    model_mapping: { m: upstream-m }
    allow: [speed, service_tier, cache_control]
    disable_store: true
    service_tier: fast
    pass_through: true
    cache_diagnostics: true
    websocket: true
    batches: only
    repair: true
    headers: { X-Team: red }
    rate_limit: { requests: 1, tokens: 2, window: 3s }
    on_client_gone: drain
    timeouts: { connect: 1s, first_byte: 2s, idle: 3s, total: 4m }
`,
      { BASE: 'http://127.0.0.1:4000/v1', KEY: 'k1' },
    )
    expect(channels[0]).toEqual({
      ...UNSTATED,
      name: 'b',
      protocol: ['messages', 'responses'],
      base_url: 'http://127.0.0.1:4000/v1',
      keys: ['k1', '${KEY}'],
      models: ['m', 'n'],
      groups: ['vip'],
      priority: -3,
      weight: 0.5,
      model_mapping: new Map([['m', 'upstream-m']]),
      allow: new Set(['speed', 'service_tier', 'cache_control']),
      disable_store: true,
      service_tier: 'fast',
      pass_through: true,
      cache_diagnostics: true,
      websocket: true,
      batches: 'only',
      repair: true,
      headers: new Map([['x-team', 'red']]),
      rate_limit: { requests: 1, tokens: 2, windowMs: 3_000 },
      on_client_gone: 'drain',
      timeouts: { connect: 1_000, first_byte: 2_000, idle: 3_000, total: 240_000 },
    })
  })
})

describe('users', () => {
  test("a user in gateway.yaml needs a name, and each of the user's tokens a name and a quota", () => {
    const { users } = read('users: [{ username: u, tokens: [{ name: t, remain_quota: 5 }] }]')
    expect(users).toEqual([
      {
        id: undefined,
        username: 'u',
        role: 1,
        status: undefined,
        group: 'default',
        quota: 0,
        unlimited_quota: false,
        access_token: undefined,
        tokens: [
          {
            name: 't',
            key: undefined,
            status: undefined,
            expired_time: -1,
            remain_quota: 5,
            unlimited_quota: false,
            model_limits_enabled: false,
            model_limits: '',
            allow_ips: null,
            group: '',
            vendor_routes: '',
            guards: [],
            toolsets: [],
          },
        ],
      },
    ])
  })

  test('users and their tokens in gateway.yaml accept every writable field', () => {
    const { users } = read(
      `
groups: { vip: { open: false }, slow: {} }
users:
  - id: 7
    username: \${NAME}
    role: 100
    status: 2
    group: vip
    quota: 10
    unlimited_quota: true
    access_token: at
    budget: 5000
    budget_period: month
    tokens:
      - name: t
        key: sk-sk-AbC123
        status: 2
        expired_time: 1000000000
        remain_quota: 3
        unlimited_quota: \${YES}
        model_limits_enabled: true
        model_limits: m,n
        allow_ips: |
          10.0.0.0/8

          ::1
        group: vip
        vendor_routes: '{"anthropic": "slow", "openai": "vip"}'
        budget: 0
        rate_limit: { requests: 60, parallel: 4, window: 30s }
`,
      { NAME: 'ann', YES: 'true' },
    )
    expect(users[0]).toEqual({
      id: 7,
      username: 'ann',
      role: 100,
      status: 2,
      group: 'vip',
      quota: 10,
      unlimited_quota: true,
      access_token: 'at',
      tokens: [
        {
          name: 't',
          key: 'AbC123',
          status: 2,
          expired_time: 1_000_000_000,
          remain_quota: 3,
          unlimited_quota: true,
          model_limits_enabled: true,
          model_limits: 'm,n',
          allow_ips: '10.0.0.0/8\n::1',
          group: 'vip',
          vendor_routes: '{"anthropic": "slow", "openai": "vip"}',
          guards: [],
          toolsets: [],
          limits: { budget: null, rateLimit: { requests: 60, tokens: 0, parallel: 4, windowMs: 30_000 } },
        },
      ],
      limits: { budget: { amount: 5000, period: 'month' }, rateLimit: undefined },
    })
  })

  test('two users in gateway.yaml may have tokens of the same name', () => {
    const users = ['a', 'b'].map(
      (name) => `{ username: ${name}, tokens: [{ name: main, unlimited_quota: true }] }`,
    )
    expect(read(`users: [${users.join(', ')}]`).users).toHaveLength(2)
  })
})

test('YAML anchors and aliases in gateway.yaml are resolved', () => {
  const { channels } = read(`
channels:
  - { name: a, protocol: chat, base_url: http://a, models: &both [m, n] }
  - { name: b, protocol: chat, base_url: http://b, models: *both }
`)
  expect(channels.map(({ models }) => models)).toEqual([
    ['m', 'n'],
    ['m', 'n'],
  ])
})

test('a YAML alias refers to the last anchor of its name above it, also inside another alias', () => {
  const { models } = read(`
models:
  a: { fallback: &list [&one x] }
  b: { fallback: [*one] }
  c: { fallback: &second [&one y] }
  d: { fallback: *list }
  e: { fallback: [*one] }
`)
  expect([...models].map(([name, { fallback }]) => [name, ...fallback])).toEqual([
    ['a', 'x'],
    ['b', 'x'],
    ['c', 'y'],
    ['d', 'x'],
    ['e', 'y'],
  ])
})

test('an error inside a YAML alias names the line in the anchor; an unknown path has the line of its parent', () => {
  const { lineOf } = parseYamlDocument(
    'a: &x\n  - one\n  - { b: two,\n      c: three }\nd: *x\n\ne:\n  - four\n',
    () => undefined,
  )
  const places = [[], ['a'], ['a', 1, 'c'], ['d'], ['d', 1, 'c'], ['e', 0], ['e', 5], ['e', 'f'], ['no']]
  expect(places.map(lineOf)).toEqual([1, 1, 4, 5, 4, 8, 7, 7, 1])
})

test('a number or a boolean in gateway.yaml may come from an environment variable', () => {
  const { options } = read(
    'options:\n  retries: ${N}\n  token_stats: ${F}\n  usd_exchange_rate: ${R}\n  body_limit: ${N}KiB\n',
    { N: '7', F: 'false', R: '7.10' },
  )
  expect(options).toMatchObject({
    retries: 7,
    token_stats: false,
    usd_exchange_rate: { digits: 710n, scale: 2 },
    body_limit: 7168,
  })
})

test('answers are cached only if gateway.yaml has options.cache, whose fields have defaults', () => {
  expect(read('options: {}\n').options.cache).toBeUndefined()
  const defaults = {
    ttl: 0,
    max_ttl: 3_600_000,
    scope: 'token',
    most: 1_000_000_000,
    price: { digits: 0n, scale: 0 },
  }
  expect(read('options:\n  cache: {}\n').options.cache).toEqual(defaults)
  expect(read('options:\n  cache: { ttl: 10m, most: 2MiB, price: 0.1 }\n').options.cache).toEqual({
    ...defaults,
    ttl: 600_000,
    most: 2_097_152,
    price: { digits: 1n, scale: 1 },
  })
})

test.each([
  ['', undefined],
  ['cache: 10m', 600_000],
  ['cache: 0', 0],
])('a model with the setting "%s" in gateway.yaml caches its answers for %s ms', (line, expected) => {
  expect(read(`models:\n  m: { ${line} }\n`).models.get('m')?.cache).toBe(expected)
})

test('channels, guards and buckets have the address of Amazon in the partition of their region', () => {
  const region = 'eusc-de-east-1'
  const key = 'AKIDEXAMPLE0000:wJalrXUtnFEMIK7MDENG'
  const { channels, guards, contentLog } = read(`
    content_log: { store: "s3://said", region: ${region} }
    channels: [{ name: c, provider: bedrock, protocol: converse, region: ${region}, keys: ["${key}"], models: [m] }]
    guards: [{ name: g, do: block, match: { bedrock: { region: ${region}, guardrail: g, version: 1, keys: ["${key}"] } } }]`)
  const bedrock = `https://bedrock-runtime.${region}.amazonaws.eu`
  expect(channels[0]?.base_url).toBe(bedrock)
  expect(guards[0]?.match).toMatchObject({ base_url: bedrock })
  expect(contentLog.store).toMatchObject({ endpoint: `https://s3.${region}.amazonaws.eu` })
})
