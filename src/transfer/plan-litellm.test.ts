import { readLitellm, type VariableReader } from '@sluice/import/litellm'
import { readLitellmDatabase } from '@sluice/import/litellm-database'
import type { SourceRow } from '@sluice/import/source'
import { describe, expect, test } from 'vitest'
import { onFixedDay } from '../../test/fixtures/fixed-day.ts'
import type { SourceConfiguration } from './plan-configuration.ts'
import { planLitellm, withModelNames } from './plan-litellm.ts'
import { SOURCE_READERS } from './source-readers.ts'

onFixedDay()

const HTTP: VariableReader = { variable: () => undefined, missing: 'is not read over HTTP' }

const parsed = (text: string, variables = HTTP, stored?: ReadonlyMap<string, string>) =>
  readLitellm(text, SOURCE_READERS.configuration, variables, stored)

/** `stored`: what LiteLLM has in its database. */
function read(
  text: string,
  variables = HTTP,
  stored?: Readonly<Record<string, string>>,
): SourceConfiguration {
  const configuration = parsed(text, variables, stored && new Map(Object.entries(stored)))
  if (!configuration) throw new Error('not a configuration')
  return planLitellm({ configuration }, variables.missing, 100_000)
}

const channelsIn = ({ channels }: SourceConfiguration) => channels.map(({ channel }) => channel)

describe('a LiteLLM configuration', () => {
  test('LiteLLM models of the same provider, address and key become one channel with a model mapping', () => {
    const source = read(`
model_list:
  - model_name: small
    litellm_params: { model: openai/gpt-4o-mini, api_key: sk-one }
  - model_name: gpt-4o
    litellm_params: { model: openai/gpt-4o, api_key: sk-one }
  - model_name: gpt-4o
    litellm_params: { model: openai/gpt-4o, api_key: sk-two }
`)
    expect(channelsIn(source)).toMatchObject([
      {
        name: 'openai',
        keys: ['sk-one'],
        status: 1,
        declared: { models: ['small', 'gpt-4o'], model_mapping: { small: 'gpt-4o-mini' } },
      },
      { name: 'openai-2', keys: ['sk-two'], declared: { models: ['gpt-4o'] } },
    ])
  })

  test('two LiteLLM models of the same name with different upstream models become two channels', () => {
    const source = read(`
model_list:
  - model_name: best
    litellm_params: { model: openai/gpt-4o, api_key: sk-one }
  - model_name: best
    litellm_params: { model: openai/gpt-5, api_key: sk-one }
`)
    expect(channelsIn(source).map(({ name, declared }) => [name, declared['model_mapping']])).toEqual([
      ['openai', { best: 'gpt-4o' }],
      ['openai-2', { best: 'gpt-5' }],
    ])
  })

  test('a LiteLLM address of an OpenAI-compatible server is kept as base URL, and one of Anthropic gets /v1', () => {
    const source = read(`
model_list:
  - model_name: local
    litellm_params: { model: hosted_vllm/llama, api_base: "http://10.0.0.5:8000/v1/" }
  - model_name: claude
    litellm_params: { model: anthropic/claude-sonnet-4-5, api_base: "https://claude.example.com", api_key: sk-ant }
`)
    expect(channelsIn(source)).toMatchObject([
      { name: 'hosted_vllm', status: 1, declared: { protocol: 'chat', base_url: 'http://10.0.0.5:8000/v1' } },
      {
        name: 'anthropic',
        declared: { protocol: 'messages', base_url: 'https://claude.example.com/v1' },
      },
    ])
  })

  test('LiteLLM models of Azure, Bedrock and Vertex keep their API version, region, project and location', () => {
    const source = read(`
model_list:
  - model_name: gpt-4o
    litellm_params: { model: azure/prod, api_base: "https://us.openai.azure.com", api_key: az, api_version: "2024-10-21" }
  - model_name: claude
    litellm_params:
      model: bedrock/converse/anthropic.claude-sonnet-4-5-v1:0
      aws_access_key_id: AKIAIOSFODNN7EXAMPLE
      aws_secret_access_key: wJalrXUtnFEMI/K7MDENG
      aws_region_name: eu-central-1
  - model_name: gemini
    litellm_params:
      model: vertex_ai/gemini-2.5-pro
      vertex_project: my-project
      vertex_location: europe-west4
      vertex_credentials: '{"client_email":"a@b.c","private_key":"x"}'
`)
    expect(channelsIn(source)).toMatchObject([
      {
        name: 'azure',
        declared: {
          provider: 'azure',
          base_url: 'https://us.openai.azure.com',
          api_version: '2024-10-21',
          model_mapping: { 'gpt-4o': 'prod' },
        },
      },
      {
        name: 'bedrock',
        keys: ['AKIAIOSFODNN7EXAMPLE:wJalrXUtnFEMI/K7MDENG'],
        declared: {
          provider: 'bedrock',
          region: 'eu-central-1',
          model_mapping: { claude: 'anthropic.claude-sonnet-4-5-v1:0' },
        },
      },
      {
        name: 'vertex_ai',
        keys: ['{"client_email":"a@b.c","private_key":"x"}'],
        declared: { provider: 'vertex', project: 'my-project', location: 'europe-west4' },
      },
    ])
  })

  test('os.environ keys in a LiteLLM file are read by the import command; over HTTP such a channel is imported as disabled', () => {
    const text = `
model_list:
  - model_name: gpt-4o
    litellm_params: { model: gpt-4o, api_key: os.environ/OPENAI_API_KEY }
`
    const [offline] = read(text).channels
    expect(offline?.channel).toMatchObject({ name: 'openai', status: 2, keys: [] })
    expect(offline?.line.notes).toContain('the variable OPENAI_API_KEY is not read over HTTP')
    const command = { variable: () => 'sk-of-the-machine', missing: 'is not set in the environment' }
    expect(channelsIn(read(text, command))).toMatchObject([{ status: 1, keys: ['sk-of-the-machine'] }])
  })

  test('a LiteLLM entry is not imported if its address is in an environment variable that is not read', () => {
    const configuration = read(`
model_list:
  - model_name: m
    litellm_params: { model: openai/m, api_base: os.environ/HOST_OF_MODELS, api_key: sk }
`)
    expect(configuration.channels).toEqual([])
    expect(configuration.left[0]?.notes[0]).toContain('HOST_OF_MODELS')
  })

  test("LiteLLM rate limits of a channel's models are added up, and prices are converted exactly to a million tokens", () => {
    const configuration = read(`
model_list:
  - model_name: a
    litellm_params: { model: openai/a, api_key: sk, rpm: 60, tpm: 1000, input_cost_per_token: 0.00000125, output_cost_per_token: 1e-05 }
  - model_name: b
    litellm_params: { model: openai/b, api_key: sk, rpm: 40 }
    model_info: { input_cost_per_token: 1.5e-7 }
`)
    const [channel] = configuration.channels
    expect(channel?.channel.declared['rate_limit']).toEqual({ requests: 100, window: '1m' })
    expect(channel?.line.notes).toContain(
      'tpm does not carry over: it limits some models of the channel only',
    )
    expect(configuration.entries.map(({ entry }) => entry)).toEqual([
      { section: 'models', name: 'a', value: { price: { input: '1.25', output: '10' } } },
    ])
    expect(configuration.left).toMatchObject([{ kind: 'price', name: 'b', fate: 'left' }])
  })

  test('a LiteLLM model whose entries have different prices costs the highest of each kind, and the report names them', () => {
    const entry = (model: string, input: string, output: string, key = 'k') =>
      `  - { model_name: ${model}, litellm_params: { model: openai/up, api_key: ${key}, input_cost_per_token: ${input}, output_cost_per_token: ${output} } }\n`
    const { entries } = read(`model_list:
${entry('differing', '1e-6', '20e-6')}${entry('differing', '0.00001', '2e-6', 'other')}${entry('same', '1e-6', '2e-6')}${entry('same', '0.0000010', '0.000002', 'other')}
router_settings: { model_group_alias: { alias: differing } }
`)
    const highest = { price: { input: '10', output: '20' } }
    const notes = [
      'price: 10 and 20 USD for a million tokens of input and output, the highest of its entries: 1 and 20; 10 and 2',
    ]
    expect(entries.map(({ entry: { name, value }, line }) => [name, value, line.fate, line.notes])).toEqual([
      ['differing', highest, 'changed', notes],
      ['same', { price: { input: '1', output: '2' } }, 'carried', []],
      ['alias', highest, 'changed', notes],
    ])
  })

  test.each(['.0000015', '+1.5e-6', '15.e-7', '"0.0000015"', 'os.environ/PRICE'])(
    'a LiteLLM price of %s is that of 0.0000015',
    (input) => {
      const variables = { variable: () => '.0000015', missing: 'is not set' }
      const { entries, left } = read(
        `
model_list:
  - { model_name: gpt-4o, litellm_params: { model: openai/a, api_key: k, input_cost_per_token: ${input}, output_cost_per_token: 0 } }
`,
        variables,
      )
      expect(entries.map(({ entry }) => entry.value)).toEqual([{ price: { input: '1.5', output: '0' } }])
      expect(left).toEqual([])
    },
  )

  test.each([
    ['cheap', 'cheap'],
    ['""', ''],
    ['true', 'true'],
    ['.inf', '.inf'],
    ['[1]', 'a list or a mapping'],
    ['os.environ/PRICE', 'os.environ/PRICE, which is not read over HTTP'],
  ])('a LiteLLM price of %s is a line of the report that says what was found', (output, found) => {
    const { entries, left } = read(`
model_list:
  - { model_name: gpt-4o, litellm_params: { model: openai/a, api_key: k }, model_info: { output_cost_per_token: ${output} } }
`)
    expect(entries).toEqual([])
    const notes = [`output_cost_per_token: expected a number, found ${found}`]
    expect(left).toMatchObject([{ kind: 'price', name: 'gpt-4o', fate: 'left', notes }])
  })

  test('the value of a variable that is no LiteLLM price is not in the report', () => {
    const variables = { variable: () => 'sk-secret', missing: 'is not set' }
    const source = read(
      `
model_list:
  - { model_name: m, litellm_params: { model: openai/a, api_key: k, input_cost_per_token: os.environ/PRICE } }
`,
      variables,
    )
    expect(source.left[0]?.notes).toEqual(['input_cost_per_token: expected a number, found os.environ/PRICE'])
  })

  test('the report names other LiteLLM prices of a model, in litellm_params and in model_info', () => {
    const [channel] = read(`
model_list:
  - model_name: m
    litellm_params: { model: openai/a, api_key: k, input_cost_per_second: 1 }
    model_info: { id: x, mode: chat, input_cost_per_token: 1e-6, cache_read_input_token_cost: 1e-7, output_cost_per_reasoning_token: 1e-6 }
`).channels
    expect(channel?.line.notes).toEqual([
      'm: litellm_params.input_cost_per_second has no effect here',
      'm: model_info.cache_read_input_token_cost has no effect here',
      'm: model_info.output_cost_per_reasoning_token has no effect here',
    ])
  })

  test('a LiteLLM embedding model has a complete price, of which LiteLLM states the input alone', () => {
    const configuration = read(`
model_list:
  - { model_name: text-embedding-3-small, litellm_params: { model: openai/e, api_key: k, input_cost_per_token: 0.00000002 } }
  - model_name: vectors
    litellm_params: { model: openai/v, api_key: k, input_cost_per_token: 0.0000001 }
    model_info: { mode: embedding }
`)
    expect(configuration.entries.map(({ entry }) => entry)).toEqual([
      {
        section: 'models',
        name: 'text-embedding-3-small',
        value: { price: { input: '0.02', output: '0' } },
      },
      { section: 'models', name: 'vectors', value: { price: { input: '0.1', output: '0' } } },
    ])
  })

  test('patterns of LiteLLM models become patterns of a channel, and a prefix becomes the models of the built-in prices', () => {
    const [all, some, prefixed] = channelsIn(
      read(`
model_list:
  - { model_name: "*", litellm_params: { model: "openai/*", api_key: one } }
  - { model_name: "claude-*", litellm_params: { model: "anthropic/claude-*", api_key: two } }
  - { model_name: "google/*", litellm_params: { model: "gemini/*", api_key: three } }
`),
    ).map(({ declared }) => declared)
    expect(all).toMatchObject({ models: ['*'] })
    expect(all).not.toHaveProperty('model_mapping', { '*': '*' })
    expect(some).toMatchObject({ models: ['claude-*'] })
    expect(prefixed).toMatchObject({
      models: expect.arrayContaining(['google/gemini-2.5-pro']),
      model_mapping: { 'google/gemini-2.5-pro': 'gemini-2.5-pro' },
    })
  })

  test('a pattern among the models of a LiteLLM key becomes the names that match it', () => {
    const source = read(`
model_list:
  - { model_name: team-a/small, litellm_params: { model: openai/a, api_key: k } }
  - { model_name: team-a/large, litellm_params: { model: openai/b, api_key: k } }
  - { model_name: other, litellm_params: { model: openai/c, api_key: k } }
`)
    const limited = (models: string) => ({ model_limits_enabled: true, model_limits: models })
    const [some, none, exact] = withModelNames(
      [limited('team-a/*,other'), limited('team-b/*'), limited('other')],
      source,
    )
    expect(some).toMatchObject({
      model_limits: 'team-a/small,team-a/large,other',
      notes: 'models: team-a/* becomes the 2 models here that match it',
    })
    expect(none).toMatchObject({ model_limits_enabled: true, model_limits: 'team-b/*' })
    expect(exact).toEqual(limited('other'))
  })

  test('a LiteLLM key may use the models that are both in its list and in that of its team, with patterns and access groups', () => {
    const text = `
model_list:
  - { model_name: team-a/small, litellm_params: { model: openai/a, api_key: k }, model_info: { access_groups: [beta] } }
  - { model_name: team-a/large, litellm_params: { model: openai/b, api_key: k } }
  - { model_name: other, litellm_params: { model: openai/c, api_key: k }, model_info: { access_groups: [beta, gamma] } }
`
    const limits = (own: string, ofTeam: string): unknown => {
      const token = { model_limits_enabled: true, model_limits: own, team_models: ofTeam }
      return withModelNames([token], read(text), parsed(text)?.accessGroups)[0]?.['model_limits']
    }
    expect(limits('team-a/*,other', 'team-a/large')).toBe('team-a/large')
    expect(limits('team-a/large,other', 'team-a/*')).toBe('team-a/large')
    expect(limits('team-a/*', '*/small')).toBe('team-a/small')
    expect(limits('beta', 'other,team-a/large')).toBe('other')
    expect(limits('team-a/large,team-a/small', 'beta')).toBe('team-a/small')
    expect(limits('gamma', 'beta')).toBe('other')
    expect(limits('beta', '')).toBe('team-a/small,other')
    // Names that the file does not explain are compared as they are.
    expect(limits('new/*', 'new/large')).toBe('new/large')
    expect(limits('stored-group,other', 'stored-group')).toBe('stored-group')
    expect(limits('other', 'no-default-models')).toBe('')
  })

  test('other names of LiteLLM models are names of the same models, with the same price', () => {
    const source = read(`
model_list:
  - { model_name: gpt-4o, litellm_params: { model: openai/gpt-4o, api_key: one, input_cost_per_token: 1e-6, output_cost_per_token: 2e-6 } }
router_settings:
  model_group_alias: { best: gpt-4o, quiet: { model: gpt-4o, hidden: true }, lost: nothing }
`)
    expect(channelsIn(source)).toMatchObject([
      {
        declared: {
          models: ['gpt-4o', 'best', 'quiet'],
          model_mapping: { best: 'gpt-4o', quiet: 'gpt-4o' },
        },
      },
    ])
    expect(source.entries.map(({ entry }) => entry.name)).toEqual(['gpt-4o', 'best', 'quiet'])
    expect(source.left).toMatchObject([{ kind: 'channel', name: 'lost' }])
  })

  test('fallbacks of LiteLLM are those of the model, of each kind and from both sections', () => {
    const { entries, left } = read(`
model_list:
  - { model_name: a, litellm_params: { model: openai/a, api_key: one, input_cost_per_token: 1e-6, output_cost_per_token: 2e-6 } }
litellm_settings:
  fallbacks: [{ a: [b, c] }, { d: b }]
  context_window_fallbacks: [{ a: [long] }]
router_settings:
  content_policy_fallbacks: [{ a: [mild] }]
`)
    expect(entries.map(({ entry }) => entry)).toMatchObject([
      {
        section: 'models',
        name: 'a',
        value: {
          price: { input: '1', output: '2' },
          fallback: ['b', 'c'],
          context_fallback: ['long'],
          content_fallback: ['mild'],
        },
      },
      { section: 'models', name: 'd', value: { fallback: ['b'] } },
    ])
    expect(left).toEqual([])
  })

  test('other names, fallbacks and settings that LiteLLM stores in its database are read like those of the file', () => {
    const source = read(
      `
model_list:
  - { model_name: a, litellm_params: { model: openai/a, api_key: one } }
  - { model_name: b, litellm_params: { model: openai/b, api_key: one } }
router_settings: { model_group_alias: { both: a, moved: a }, num_retries: 1 }
`,
      HTTP,
      {
        router_settings:
          '{"model_group_alias": {"both": "a", "moved": "b", "new": "b", "lost": "c"}, "num_retries": 2, "timeout": 5}',
        litellm_settings: '{"fallbacks": [{"a": ["b"]}], "tag": "${NAME}"}',
        'odd: [': 'null',
      },
    )
    expect(channelsIn(source)).toMatchObject([
      {
        declared: {
          models: ['a', 'b', 'both', 'moved', 'new'],
          model_mapping: { both: 'a', moved: 'b', new: 'b' },
        },
      },
    ])
    expect(source.entries.map(({ entry }) => [entry.name, entry.value])).toEqual([['a', { fallback: ['b'] }]])
    expect(source.left.map(({ kind, name }) => [kind, name])).toEqual([
      ['channel', 'lost'],
      ['option', 'router_settings.num_retries'],
      ['option', 'router_settings.timeout'],
      ['option', 'litellm_settings.tag'],
      ['option', 'odd: ['],
    ])
  })

  test('aliases cannot multiply the models of a LiteLLM configuration', () => {
    const models = '  - { model_name: a, litellm_params: { model: openai/a, api_key: one } }\n'.repeat(200)
    const aliases = Array.from({ length: 60 }, (_, n) => `x${n}: a`).join(', ')
    expect(() =>
      parsed(`model_list:\n${models}router_settings: { model_group_alias: { ${aliases} } }`),
    ).toThrow('more than 10000 entries')
  })

  test('every entry of a LiteLLM configuration that cannot be imported is a line of the report', () => {
    const source = read(`
model_list:
  - model_name: "a-*"
    litellm_params: { model: "openai/b-*", api_key: sk }
  - model_name: odd
    litellm_params: { model: replicate/odd, api_key: sk }
  - model_name: hot
    litellm_params: { model: openai/hot, api_key: sk, temperature: 1 }
general_settings: { master_key: sk-1234 }
mystery: true
`)
    expect(source.left.map(({ kind, name, fate }) => [kind, name, fate])).toEqual([
      ['channel', 'a-*', 'left'],
      ['channel', 'odd', 'left'],
      ['option', 'general_settings.master_key', 'left'],
      ['option', 'mystery', 'left'],
    ])
    expect(source.channels[0]?.line.notes).toEqual(['hot: litellm_params.temperature has no effect here'])
    expect(JSON.stringify(source)).not.toContain('sk-1234')
  })

  test.each(['', 'a: 1', '- 1', 'model_list: text', '<html></html>', 'port: 4000\nchannels: []'])(
    'a text without a list of models is not a LiteLLM configuration: %j',
    (text) => expect(parsed(text)).toBeUndefined(),
  )

  test('${NAME} in a LiteLLM configuration is not replaced by a variable', () => {
    const source = read(`
model_list:
  - model_name: m
    litellm_params: { model: openai/m, api_key: "a$\{NAME}$$\{B}" }
`)
    expect(channelsIn(source)[0]?.keys).toEqual(['a${NAME}$${B}'])
  })

  test('a LiteLLM configuration with multiplying aliases, 50 nested levels or 10,001 models is refused with a message', () => {
    const level = (n: number): string =>
      `a${n}: &a${n} [${Array.from({ length: 10 }, () => `*a${n - 1}`).join()}]`
    const bomb = ['a0: &a0 [x]', ...[1, 2, 3, 4, 5, 6, 7].map(level), 'model_list: *a7'].join('\n')
    expect(() => parsed(bomb)).toThrow(/aliases|cannot be read/)
    const deep = `model_list:\n  - ${'['.repeat(50)}${']'.repeat(50)}`
    expect(() => parsed(deep)).toThrow('at most 32 levels')
    const long = `model_list:\n${'  - {model_name: a}\n'.repeat(10_001)}`
    expect(() => parsed(long)).toThrow('more than 10000 entries')
  })
})

/** The teams of a LiteLLM database with these rows, and the team of each of its keys. */
async function teamsIn(teams: readonly SourceRow[]) {
  const keys = teams.map(({ team_id }) => ({ token: 'digest', team_id }))
  const tables = new Map<string, readonly SourceRow[]>([
    ['LiteLLM_TeamTable', teams],
    ['LiteLLM_VerificationToken', keys],
  ])
  const rows = (table: string) => Promise.resolve(tables.get(table) ?? [])
  const accounts = await readLitellmDatabase(
    {
      rows,
      columnsOf: async (table) => Object.keys((await rows(table))[0] ?? {}),
      tables: () => Promise.resolve([]),
      countRows: () => Promise.resolve(0),
      close: () => Promise.resolve(),
    },
    undefined,
  )
  if (!accounts) throw new Error('not a database of LiteLLM')
  return { ...accounts, ofKeys: accounts.tokens.map(({ team_group }) => team_group) }
}

describe('teams of LiteLLM', () => {
  test('a LiteLLM team named default does not become the group default, which is that of all users', async () => {
    const { teams, ofKeys, left } = await teamsIn([
      { team_id: 't-1', team_alias: 'default' },
      { team_id: 'default', team_alias: null },
    ])
    expect(teams).toMatchObject([
      { name: 't-1', notes: ['its name is "t-1" here, because "default" is another group'] },
    ])
    expect(ofKeys).toEqual(['t-1'])
    expect(left.map(({ kind, note }) => [kind, note])).toEqual([
      ['group', 'team_alias: expected a name that no other group has'],
      ['token', 'the row of its team cannot be read'],
    ])
  })

  test('a LiteLLM team with a comma in its alias becomes a group with its id, because lists of groups have commas', async () => {
    const { teams } = await teamsIn([{ team_id: 't-1', team_alias: 'Sales, EMEA' }])
    expect(teams).toMatchObject([
      { name: 't-1', notes: ['its name is "t-1" here, because "Sales, EMEA" has a comma'] },
    ])
  })

  test('the group of a LiteLLM team with a budget below half a quota unit has a budget of one unit', async () => {
    const { teams, ...accounts } = await teamsIn([
      { team_id: 't', max_budget: '0.001', budget_duration: '30d', spend: '0' },
    ])
    const { entries } = planLitellm({ configuration: undefined, accounts: { ...accounts, teams } }, '', 100)
    expect(entries.map(({ entry }) => entry.value)).toEqual([
      { ratio: '1', open: false, budget: 1, budget_period: 'month' },
    ])
  })

  test('no two LiteLLM teams become one group, and their groups do not depend on the order of rows', async () => {
    const rows = [
      { team_id: 'ops', team_alias: 'x' },
      { team_id: 'x', team_alias: null },
      { team_id: 'y', team_alias: 'twice' },
      { team_id: 'z', team_alias: 'twice' },
      { team_id: 'w', team_alias: 'w' },
    ]
    const names = ['ops', 'x', 'y', 'z', 'w']
    expect((await teamsIn(rows)).teams.map(({ name }) => name)).toEqual(names)
    expect((await teamsIn(rows)).ofKeys).toEqual(names)
    expect((await teamsIn(rows.toReversed())).ofKeys).toEqual(names.toReversed())
  })
})
