import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { onFixedDay } from '../../test/fixtures/fixed-day.ts'
import { type Config, readConfig } from './config.ts'
import { readEnvironment } from './environment.ts'
import { ConfigError, formatDiagnostic } from './diagnostics.ts'

const folder = mkdtempSync(join(tmpdir(), 'config-'))
afterAll(() => rmSync(folder, { recursive: true }))

function config(text: string, env: NodeJS.ProcessEnv = {}): Config {
  const file = join(folder, 'some.yaml')
  writeFileSync(file, text)
  return readConfig(readEnvironment(env, { config: file }, folder))
}

function catchError(run: () => unknown): unknown {
  try {
    return run()
  } catch (caught) {
    return caught
  }
}

const withoutFile = (env: NodeJS.ProcessEnv) => readConfig(readEnvironment(env, {}, folder))
const warnings = ({ warnings }: Config) =>
  warnings.map((warning) => formatDiagnostic(warning).replace(`${folder}/`, ''))
const CHANNEL = 'channels: [{ name: a, protocol: chat, base_url: "http://a", models: [gpt-4o-mini] }]\n'

describe('the configuration', () => {
  test('an invalid configuration is refused with the file, the line, the path and what is expected', () => {
    const file = join(folder, 'some.yaml')
    const error = catchError(() =>
      config('options:\n  retries: 2\n\n  display: EUR\nchannels: [{ name: 1 }]\n'),
    )
    expect(error).toBeInstanceOf(ConfigError)
    expect(error).toMatchObject({
      diagnostics: [
        { file, line: 4, path: 'options.display', message: 'expected one of USD, CNY, TOKENS, found "EUR"' },
        { file, line: 5, path: 'channels[0].name' },
        { file, line: 5, path: 'channels[0].protocol' },
        { file, line: 5, path: 'channels[0].base_url' },
        { file, line: 5, path: 'channels[0].models' },
      ],
    })
  })

  test('a configuration file that cannot be read is refused', () => {
    expect(() => readConfig(readEnvironment({}, { config: folder }))).toThrow(
      /expected a file that can be read/,
    )
  })

  test('the configuration is frozen at every level', () => {
    const { settings, environment, users } = config(`${CHANNEL}users: [{ username: u }]`)
    expect(() => Object.assign(settings.options, { retries: 9 })).toThrow(TypeError)
    expect(() => Object.assign(settings.channels[0]?.timeouts ?? {}, { idleMs: 9 })).toThrow(TypeError)
    expect(() => (settings.groups as Map<string, unknown>).set('x', {})).toThrow(TypeError)
    expect(() => (settings.channels[0]?.allow as Set<string> | undefined)?.add('speed')).toThrow(TypeError)
    expect(() => (environment.variables as Map<string, string>).clear()).toThrow(TypeError)
    expect(() => (users as unknown[]).push(1)).toThrow(TypeError)
  })
})

describe('models', () => {
  const { settings } = config(`
models:
  gpt-4o-mini: { rate_limit: { requests: 5 } }
  gpt-4o: { price: { input: 1, output: 2 } }
  gpt-oss-120b: { vendor: cerebras }
  house-model: { vendor: house }
  house-thinker: { thinking: adaptive, sampling: false }
`)

  test('a model that is declared without a price has the built-in price', () => {
    const model = settings.models.get('gpt-4o-mini')
    expect(model).toMatchObject({ name: 'gpt-4o-mini', vendor: 'openai', rate_limit: { requests: 5 } })
    expect(model.price?.tokens.input).toEqual({ digits: 15n, scale: 2 })
    expect(settings.models.get('gpt-oss-120b').price?.tokens.input).toEqual({ digits: 35n, scale: 2 })
  })

  test('the capabilities of a model are the declared ones, and all others follow from its name', () => {
    expect(settings.models.get('house-thinker')).toMatchObject({
      thinking: 'adaptive',
      sampling: false,
    })
    const { thinking, sampling } = settings.models.get('gpt-4o')
    expect([thinking, sampling]).toEqual([undefined, undefined])
  })

  test('a model that is declared with a price has this price', () => {
    expect(settings.models.get('gpt-4o')).toMatchObject({
      vendor: 'openai',
      price: { tokens: { output: { digits: 2n, scale: 0 } } },
    })
  })

  describe('an alias', () => {
    const named = (...mappings: string[]) =>
      mappings
        .map(
          (mapping, index) =>
            `  - { name: c${index}, protocol: chat, base_url: "http://a", models: [claude], model_mapping: { ${mapping} } }\n`,
        )
        .join('')
    const aliasOf = (text: string) => config(text).settings.models.get('claude')
    const SONNET = 'claude: claude-sonnet-4-5'

    test('has the price, the vendor and the context length of the model to which all of its channels map it', () => {
      const { settings, ...rest } = config(`channels:\n${named(SONNET, SONNET)}`)
      const [alias, model] = [settings.models.get('claude'), settings.models.get('claude-sonnet-4-5')]
      expect(model.price).toBeDefined()
      const { vendor, price, contextTokens } = model
      expect(alias).toMatchObject({
        name: 'claude',
        vendor,
        price,
        contextTokens,
        pricedAs: 'claude-sonnet-4-5',
      })
      expect(model.pricedAs).toBeUndefined()
      expect(warnings({ settings, ...rest }).join()).not.toContain('claude has no price')
    })

    test('has a declared price of that model', () => {
      const declared = 'models: { house-1: { price: { input: 7, output: 8 } } }\n'
      expect(aliasOf(`${declared}channels:\n${named('claude: house-1')}`)).toMatchObject({
        price: { tokens: { input: { digits: 7n, scale: 0 } } },
        pricedAs: 'house-1',
      })
    })

    test('keeps a price of its own', () => {
      const declared = 'models: { claude: { price: { input: 7, output: 8 } } }\n'
      const alias = aliasOf(`${declared}channels:\n${named(SONNET)}`)
      expect(alias).toMatchObject({ price: { tokens: { input: { digits: 7n, scale: 0 } } } })
      expect(alias.pricedAs).toBeUndefined()
    })

    test.each([
      ['channels map it to different models', named(SONNET, 'claude: claude-opus-4-5')],
      ['a channel does not map it', named(SONNET, '')],
      ['its model has no price', named('claude: house-1')],
    ])('has no price if %s', (_, channels) => {
      expect(aliasOf(`channels:\n${channels}`).price).toBeUndefined()
    })

    test('belongs to the version of the prices', () => {
      const versionOf = (mapping: string) => config(`channels:\n${named(mapping)}`).settings.priceVersion
      expect(versionOf(SONNET)).not.toBe(versionOf('claude: claude-opus-4-5'))
    })
  })

  test('a model that is not declared has its built-in price, or else no vendor and no price', () => {
    expect(settings.models.get('claude-sonnet-4-5')).toMatchObject({
      vendor: 'anthropic',
      rate_limit: { requests: 0 },
    })
    expect(settings.models.get('nobody')).toEqual({
      name: 'nobody',
      vendor: undefined,
      price: undefined,
      rate_limit: { requests: 0, tokens: 0, windowMs: 60_000 },
      contextTokens: 200_000,
      isContextKnown: false,
      fallback: [],
      context_fallback: [],
      content_fallback: [],
      balance: 'weight',
    })
    expect(settings.models.get('house-model')).toMatchObject({ vendor: 'house', price: undefined })
    expect(settings.models.get('__proto__').price).toBeUndefined()
  })

  test('the configuration lists the models that gateway.yaml declares', () => {
    expect(settings.models.declared).toEqual([
      'gpt-4o-mini',
      'gpt-4o',
      'gpt-oss-120b',
      'house-model',
      'house-thinker',
    ])
  })
})

describe('vendor keys', () => {
  onFixedDay()

  test('API keys of vendors in the environment create a channel each if no channel is configured', () => {
    const { settings } = withoutFile({
      OPENAI_API_KEY: 'sk-o',
      ANTHROPIC_API_KEY: 'sk-a',
      COHERE_API_KEY: 'c',
      JINA_API_KEY: 'j',
    })
    expect(
      settings.channels.map(({ name, protocol: protocols, base_url: baseUrl, keys, groups }) => [
        name,
        ...protocols,
        baseUrl,
        keys,
        groups,
      ]),
    ).toEqual([
      ['openai', 'chat', 'https://api.openai.com/v1', ['sk-o'], ['default']],
      ['anthropic', 'messages', 'https://api.anthropic.com/v1', ['sk-a'], ['default']],
      ['cohere', 'chat', 'https://api.cohere.ai/compatibility/v1', ['c'], ['default']],
      ['cohere-rerank', 'rerank', 'https://api.cohere.com/v1', ['c'], ['default']],
      ['jina', 'chat', 'https://api.jina.ai/v1', ['j'], ['default']],
      ['jina-rerank', 'rerank', 'https://api.jina.ai/v1', ['j'], ['default']],
    ])
    const [openai, anthropic, cohere, rerank, jina, jinaRerank] = settings.channels.map(
      ({ models }) => models,
    )
    expect(jina).toContain('jina-embeddings-v4')
    expect(jinaRerank).toContain('jina-reranker-v3')
    expect(jinaRerank).not.toContain('jina-embeddings-v4')
    expect(openai).toEqual(expect.arrayContaining(['gpt-4o', 'gpt-4o-mini', 'gpt-4o-2024-08-06', 'o3']))
    expect(openai).toEqual(expect.arrayContaining(['text-embedding-3-small', 'whisper-1']))
    expect(anthropic).toContain('claude-sonnet-4-5')
    expect(cohere).toContain('command-r-plus-08-2024')
    expect(rerank).toContain('rerank-english-v3.0')
  })

  test('API keys of vendors in the environment create no channel if one is configured', () => {
    expect(config(CHANNEL, { OPENAI_API_KEY: 'sk-o' }).settings.channels.map(({ name }) => name)).toEqual([
      'a',
    ])
  })

  test('API keys of vendors in the environment do not affect prices if a channel is configured', () => {
    const [without, with_] = [config(CHANNEL), config(CHANNEL, { OPENROUTER_API_KEY: 'k' })]
    expect(with_.settings.priceVersion).toBe(without.settings.priceVersion)
    expect(with_.settings.models.get('gpt-4o:extended').vendor).toBe('openai')
  })

  test('a model that several vendors list goes to the first vendor whose API key is in the environment', () => {
    const { settings } = withoutFile({ OPENROUTER_API_KEY: 'r', MISTRAL_API_KEY: 'm' })
    const serving = settings.channels.filter(({ models }) => models.includes('ministral-8b'))
    expect(serving.map(({ name }) => name)).toEqual(['mistral'])
    expect(withoutFile({ OPENROUTER_API_KEY: 'r' }).settings.models.get('ministral-8b').vendor).toBe(
      'openrouter',
    )
  })

  test("Google's API key in the environment creates a channel of the Gemini dialect, with image and embedding models", () => {
    const [google] = withoutFile({ GEMINI_API_KEY: 'g' }).settings.channels
    expect(google).toMatchObject({
      protocol: ['gemini'],
      base_url: 'https://generativelanguage.googleapis.com/v1beta',
    })
    expect(google?.models).toEqual(
      expect.arrayContaining(['gemini-2.5-pro', 'gemini-2.5-flash-image', 'gemini-embedding-001']),
    )
    expect(google?.models.filter((name) => name.startsWith('imagen'))).toEqual([])
  })

  test('GOOGLE_API_KEY in the environment creates the channel google, as GEMINI_API_KEY does', () => {
    expect(
      withoutFile({ GOOGLE_API_KEY: 'g' }).settings.channels.map(({ name, keys }) => [name, keys]),
    ).toEqual([['google', ['g']]])
  })

  test("the API keys in the environment decide which vendor's price a model of several vendors has", () => {
    const vendorsOf = (env: NodeJS.ProcessEnv) => {
      const { settings } = withoutFile(env)
      const channels = settings.channels.filter(({ models }) => models.includes('gpt-oss-120b'))
      return [channels.map(({ name }) => name), settings.models.get('gpt-oss-120b').vendor]
    }
    expect(vendorsOf({ CEREBRAS_API_KEY: 'k' })).toEqual([['cerebras'], 'cerebras'])
    expect(vendorsOf({ CEREBRAS_API_KEY: 'k', OPENAI_API_KEY: 'k', GROQ_API_KEY: 'k' })).toEqual([
      ['cerebras'],
      'cerebras',
    ])
  })
})

describe('the price version', () => {
  const version = (text: string) => config(text).settings.priceVersion
  const price = (text: string) => `models: { m: { price: ${text} } }\n`
  const base = version(price('{ input: 1, output: 2 }'))

  test('the price version is twelve hexadecimal digits, the same for the same prices however they are written', () => {
    expect(base).toMatch(/^[0-9a-f]{12}$/)
    expect(
      version(
        `# a remark\noptions: { retries: 9 }\n${price('{ output: "2.00", input: 1.0, cache_read: 0.1 }')}`,
      ),
    ).toBe(base)
  })

  test.each([
    ['a price', price('{ input: 1, output: 2.01 }')],
    ['a price of a cached kind', price('{ input: 1, output: 2, cache_read: 0.2 }')],
    ['a tier', price('{ input: 1, output: 2, tiers: [{ above: 9, input: 1, output: 2 }] }')],
    ['the price of a search', price('{ input: 1, output: 2, web_search: 0.02 }')],
    ['the price of a call', price('{ input: 1, output: 2, request: 1 }')],
    ['a ratio', `groups: { default: { ratio: 2 } }\n${price('{ input: 1, output: 2 }')}`],
    ['a group', `groups: { vip: {} }\n${price('{ input: 1, output: 2 }')}`],
    ['the quota of a unit', `options: { quota_per_unit: 1 }\n${price('{ input: 1, output: 2 }')}`],
  ])('the price version of a configuration changes with a change of %s', (_, text) => {
    expect(version(text)).not.toBe(base)
  })
})

test.each([
  [
    { DATABASE_URL: '' },
    'reuse_port: true',
    'options.reuse_port: expected false: only nodes on PostgreSQL (DATABASE_URL) can share a port',
  ],
  [
    { PORT: '9100' },
    'admin_listen: 127.0.0.1:9100',
    'options.admin_listen: expected another address than that of HOST and PORT',
  ],
  [
    { PORT: '9100', HOST: '0.0.0.0' },
    'admin_listen: "${ADMIN}"',
    'options.admin_listen: expected another address than that of HOST and PORT',
  ],
  [{}, 'admin_listen: 9100', 'options.admin_listen: expected HOST:PORT, such as 127.0.0.1:9100, found 9100'],
])(
  'with %j the option %s of gateway.yaml is a mistake, which names file and line',
  (env, option, message) => {
    const given = { ADMIN: '10.0.0.1:9100', ...env }
    expect(() => config(`options:\n  retries: 1\n  ${option}\n`, given)).toThrow(
      `${join(folder, 'some.yaml')}:3: ${message}`,
    )
  },
)

test('on PostgreSQL reuse_port may be true, and admin_listen another address', () => {
  const env = { DATABASE_URL: 'postgres://u@h/d' }
  const { options } = config('options: { reuse_port: true, admin_listen: "[::1]:9100" }', env).settings
  expect(options).toMatchObject({ reuse_port: true, admin_listen: '[::1]:9100' })
})

test.each([{}, { AWS_ACCESS_KEY_ID: 'id' }, { AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: 'key' }])(
  'a bucket for stored content without its credentials is refused',
  (env) => {
    expect(catchError(() => config('content_log:\n  store: s3://said\n', env))).toMatchObject({
      diagnostics: [
        {
          line: 2,
          path: 'content_log.store',
          message: 'expected the environment variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to be set',
        },
      ],
    })
  },
)

describe('warnings about the configuration', () => {
  onFixedDay()

  test('there is no warning about a normal configuration', () => {
    expect(warnings(config(CHANNEL.replace('gpt-4o-mini', 'claude-sonnet-4-5')))).toEqual([])
  })

  test('there is a warning about a configuration without channels', () => {
    expect(warnings(withoutFile({}))).toEqual([
      'environment: channels: there is no channel, and no *_API_KEY of a known vendor in the environment: only channels that were added over HTTP can serve calls',
    ])
  })

  test('there is a warning about a model without a price', () => {
    const text =
      'channels:\n  - name: a\n    protocol: chat\n    base_url: http://a\n    models:\n      - claude-sonnet-4-5\n      - house-model\n'
    expect(warnings(config(text))).toEqual([
      'some.yaml:7: channels[0].models[1]: house-model has no price: calls to it are refused',
    ])
    expect(warnings(config(`${text}options: { unpriced_models: free }`))).toEqual([
      'some.yaml:7: channels[0].models[1]: house-model has no price: calls to it are free',
    ])
  })

  test('there is a warning about a database whose connections are not encrypted and checked', () => {
    const of = (url: string) =>
      warnings(withoutFile({ DATABASE_URL: url, DEEPSEEK_API_KEY: 'k' })).filter((line) =>
        line.includes('DATABASE_URL'),
      )
    expect(of('postgres://ann:secret@db.example/x')).toEqual([
      'environment: DATABASE_URL: connections to the database may be unencrypted: add sslmode=verify-full, and sslrootcert=FILE if its authority is a private one',
    ])
    expect(of('postgres://ann:secret@db.example/x?sslmode=verify-full')).toEqual([])
  })

  test('there is a warning about a key in quotes, in the file and in the environment', () => {
    const keys = `channels: [{ name: a, protocol: chat, base_url: "http://a", models: [gpt-4o-mini], keys: [k, '"k"'] }]`
    const quotes = 'the quotes around it are part of the key: write it without them'
    expect(warnings(config(keys))).toEqual([`some.yaml:1: channels[0].keys[1]: ${quotes}`])
    expect(warnings(withoutFile({ DEEPSEEK_API_KEY: "'k'" }))).toContain(
      `environment: channels: the key of deepseek: ${quotes}`,
    )
    expect(warnings(withoutFile({ DEEPSEEK_API_KEY: "k'" })).join()).not.toContain('quotes')
  })

  test.each([
    ['UTF-16', Buffer.from('\uFEFFoptions: {}\n', 'utf16le'), 'it is UTF-16: save it as UTF-8'],
    [
      'UTF-16 without a mark',
      Buffer.from('options: {}\n', 'utf16le'),
      'it has bytes of 0, as in UTF-16: save it as UTF-8',
    ],
    [
      'Latin-1',
      Buffer.from('options: {}\n# caf\u00e9\n', 'latin1'),
      'line 2 is not UTF-8 but some other encoding: save it as UTF-8',
    ],
  ])('a file in another encoding is refused by name: %s', (_, bytes, reason) => {
    const file = join(folder, 'encoded.yaml')
    writeFileSync(file, bytes)
    const refused = catchError(() => readConfig(readEnvironment({}, { config: file }, folder)))
    expect(refused).toMatchObject({
      diagnostics: [{ file, message: `expected a file that can be read: ${reason}` }],
    })
    const prices = join(folder, 'main.yaml')
    writeFileSync(prices, 'options: { prices_file: encoded.yaml }\n')
    const named = catchError(() => readConfig(readEnvironment({}, { config: prices }, folder)))
    expect(named).toMatchObject({ diagnostics: [{ path: 'options.prices_file' }] })
  })

  test('a file in UTF-8 with a byte order mark is read', () => {
    expect(config(`\uFEFF${CHANNEL}`).settings.channels).toHaveLength(1)
  })

  test("there is a warning about a model without a price on the channel that a vendor's API key created", () => {
    expect(warnings(withoutFile({ JINA_API_KEY: 'j' }))).toContain(
      'environment: channels: jina-embeddings-v4 has no price: calls to it are refused',
    )
    const lines = warnings(withoutFile({ JINA_API_KEY: 'j' })).filter((line) => line.includes('gateway.yaml'))
    expect(lines).toHaveLength(1)
    const line = /models: \{.*\}$/.exec(lines[0] ?? '')?.[0] ?? ''
    expect(warnings(config(`${line}\n`, { JINA_API_KEY: 'j' })).join()).not.toMatch(/jina|gateway\.yaml/)
    const priced = 'models: { jina-embeddings-v4: { price: { input: 0.05, output: 0 } } }\n'
    expect(warnings(config(priced, { JINA_API_KEY: 'j' })).join()).not.toContain('embeddings-v4')
  })

  describe('about models that end', () => {
    const at = (address: string, models: string, more = ''): string =>
      `channels:\n  - name: a\n    protocol: chat\n    base_url: ${address}\n    models: [${models}]\n${more}`

    test('there is a warning about configured models that end within 30 days, or have ended', () => {
      expect(warnings(config(at('https://api.openai.com/v1', 'gpt-4o, gpt-5, gpt-5-mini, gpt-4')))).toEqual([
        'some.yaml:5: channels[0].models[1]: gpt-5, gpt-5-mini end on 2026-12-11, as the vendor states; models.NAME.successor names the model that takes its place',
        'some.yaml:5: channels[0].models[3]: gpt-4 ended on 2026-10-23, as the vendor states; models.NAME.successor names the model that takes its place',
      ])
    })

    test('the warning about the end of a model does not suggest a successor if one is configured', () => {
      const more = 'models: { gpt-5: { successor: gpt-5.4 } }\n'
      expect(warnings(config(at('https://api.openai.com/v1', 'gpt-5, gpt-5.4', more)))).toEqual([
        'some.yaml:5: channels[0].models[0]: gpt-5 ends on 2026-12-11, as the vendor states',
      ])
    })

    test("there is no warning about a model's end at channels of other vendors, or with model_dates: false", () => {
      expect(warnings(config(at('http://self.example/v1', 'gpt-5')))).toEqual([])
      const off = 'options: { model_dates: false }\n'
      expect(warnings(config(at('https://api.openai.com/v1', 'gpt-5', off)))).toEqual([])
    })

    test('there is a warning about a successor of a model that no channel serves', () => {
      const more = 'models: { gpt-5.4: { successor: nowhere } }\n'
      expect(warnings(config(at('http://self.example/v1', 'gpt-5.4', more)))).toEqual([
        'some.yaml:6: models["gpt-5.4"].successor: no channel in gateway.yaml serves nowhere: calls go on with it only if one that was added over HTTP does',
      ])
    })
  })

  test('there is a warning about a built-in price of a kind that the gateway does not charge', () => {
    const text = CHANNEL.replace('gpt-4o-mini', 'sonar-deep-research')
    expect(warnings(config(text))).toEqual([
      'some.yaml:1: models: the built-in price of sonar-deep-research has output_reasoning_mtok, which is not charged',
      'some.yaml:1: models: the built-in price of sonar-deep-research has output_citation_mtok, which is not charged',
    ])
    expect(
      warnings(config(`${text}models: { sonar-deep-research: { price: { input: 1, output: 1 } } }`)),
    ).toEqual([])
  })

  test('there is a warning about a price without cache_read if the built-in price has another ratio of cache reads to input', () => {
    // gpt-4o-mini costs 0.15 USD, and 0.075 from a cache.
    const priced = (price: string): string[] =>
      warnings(config(`${CHANNEL}models: { gpt-4o-mini: { price: ${price} } }`))
    expect(priced('{ input: 1, output: 2 }')).toEqual([
      'some.yaml:2: models.gpt-4o-mini.price: without cache_read, a token read from a cache costs a tenth of input; by the built-in price of gpt-4o-mini it costs 0.5 of input',
    ])
    expect(priced('{ input: 1, output: 2, cache_read: 0.1 }')).toEqual([])
    expect(priced('{ request: 0.01 }')).toEqual([])
    const same = `${CHANNEL.replace('gpt-4o-mini', 'claude-sonnet-4-6')}models: { claude-sonnet-4-6: { price: { input: 3, output: 15 } } }`
    expect(warnings(config(same))).toEqual([])
  })

  test('there is no warning about a kind of built-in price that calls through the gateway cannot have', () => {
    expect(warnings(config(CHANNEL.replace('gpt-4o-mini', 'gpt-4o, gpt-4.1, o3')))).toEqual([])
    expect(warnings(withoutFile({ OPENAI_API_KEY: 'k' })).join()).not.toContain('storage_searches')
  })

  test.each([
    ['https://api.openai.com', 'chat', 'https://api.openai.com/v1', '/chat/completions'],
    ['https://api.anthropic.com/', 'messages', 'https://api.anthropic.com/v1', '/messages'],
    ['https://api.groq.com', 'chat', 'https://api.groq.com/openai/v1', '/chat/completions'],
    ['https://api.groq.com/openai', 'chat', 'https://api.groq.com/openai/v1', '/chat/completions'],
    [
      'https://generativelanguage.googleapis.com',
      'gemini',
      'https://generativelanguage.googleapis.com/v1beta',
      '/models',
    ],
    [
      'https://generativelanguage.googleapis.com/v1beta',
      'chat',
      'https://generativelanguage.googleapis.com/v1beta/openai',
      '/chat/completions',
    ],
    ['https://api.cohere.com', 'rerank', 'https://api.cohere.com/v1', '/rerank'],
  ])(
    'there is a warning about a provider’s address without its version: %s',
    (given, protocol, complete, endpoint) => {
      const text = `channels:\n  - name: a\n    protocol: ${protocol}\n    base_url: ${given}\n    models: [claude-opus-4-5]\n`
      expect(warnings(config(text))).toEqual([
        `some.yaml:4: channels[0].base_url: calls go to ${given.replace(/\/$/, '')}${endpoint}, where this provider does not answer; its base_url is ${complete}`,
      ])
    },
  )

  test.each([
    'https://api.openai.com/v1',
    'https://api.deepseek.com',
    'https://api.perplexity.ai',
    'http://a:8000',
  ])("there is no warning about a provider's address that may be correct: %s", (given) => {
    expect(warnings(config(CHANNEL.replace('http://a', given)))).toEqual([])
  })

  test('there is a warning about a login without passwords and identity providers, and about one without encryption', () => {
    const login = (issuer: string): string =>
      `${CHANNEL}login:\n  password: false\n  oidc: [{ name: a, issuer: "${issuer}", client_id: b, client_secret: c }]\n`
    expect(warnings(config(`${CHANNEL}login: { password: false }\n`)).join()).toContain(
      'login.password: without an identity provider, users sign in by access token alone',
    )
    expect(warnings(config(login('http://id.example'))).join()).toContain(
      'login.oidc[0].issuer: http: whoever is on the way can sign in',
    )
    for (const issuer of ['https://id.example', 'http://127.0.0.1:8080', 'http://localhost/x'])
      expect(warnings(config(login(issuer)))).toEqual([])
  })

  test('there is a warning about an environment variable without braces, but not about a dollar sign in a text', () => {
    const text = `channels:
  - name: a
    protocol: chat
    base_url: http://a
    models: [gpt-4o-mini]
    keys:
      - $A_KEY
      - "\${B_KEY}"
      - pa$$word
      - "$5"
    headers: { authorization: Bearer $C_KEY }
`
    expect(warnings(config(text, { B_KEY: '$D_KEY' }))).toEqual([
      'some.yaml:7: channels[0].keys[0]: a variable is written ${NAME}, in braces: without braces the text is used literally',
      'some.yaml:11: channels[0].headers.authorization: a variable is written ${NAME}, in braces: without braces the text is used literally',
    ])
  })

  test('there is a warning about a declared model that no channel serves', () => {
    expect(
      warnings(config(`${CHANNEL.replace('gpt-4o-mini', 'claude-sonnet-4-5')}models:\n  other: {}\n`)),
    ).toEqual(['some.yaml:3: models.other: no channel in gateway.yaml serves this model'])
  })

  test('there is a warning about a model mapping that is never used', () => {
    expect(
      warnings(
        config(
          'channels:\n  - name: a\n    protocol: chat\n    base_url: http://a\n    models: [claude-opus-4-5]\n    model_mapping:\n      m: n\n',
        ),
      ),
    ).toEqual([
      'some.yaml:7: channels[0].model_mapping.m: models does not list this name, so it is never mapped',
    ])
  })

  test('there is a warning about short secrets, and about limits that are set but not enabled', () => {
    const users =
      'users:\n  - username: u\n    access_token: short\n    tokens:\n      - name: t\n        key: sk-short\n        unlimited_quota: true\n        model_limits: m\n'
    expect(warnings(config(`${CHANNEL.replace('gpt-4o-mini', 'claude-sonnet-4-5')}${users}`))).toEqual([
      'some.yaml:4: users[0].access_token: fewer than 16 characters can be guessed',
      'some.yaml:7: users[0].tokens[0].key: fewer than 16 characters can be guessed',
      'some.yaml:9: users[0].tokens[0].model_limits: without model_limits_enabled: true it limits nothing',
    ])
  })
})
