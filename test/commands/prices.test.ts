import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { manage } from '../fixtures/account.ts'
import {
  commandOn,
  GATEWAY_STATES,
  inGatewayState,
  type Outcome,
  SECRET,
  sluice,
  sluiceProcess,
} from '../fixtures/command.ts'
import { dateClock } from '../fixtures/moved-clock.ts'
import { channel, ROOT } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'

interface Row {
  readonly model: string
  readonly source: string
  readonly price: Readonly<Record<string, string>> | null
  readonly data_date: string | null
  readonly differences: readonly object[]
  readonly outdated: boolean
}

const MODELS = ['alias', 'filed', 'gpt-4o', 'gpt-4o-mini', 'gpt-4.1', 'listed', 'novel', 'put']
const folder = mkdtempSync(join(tmpdir(), 'prices-'))
const pricesFile = join(folder, 'prices.yaml')
// Built in: gpt-4o costs 2.50, 1.25 cached and 10; gpt-4.1 costs 2, 0.50 cached and 8.
const MODEL_PRICES = {
  filed: { price: { input: 3, output: 15 } },
  'gpt-4.1': { price: { input: 2, output: 8 } },
}

let fixture: Fixture
beforeAll(async () => {
  writeFileSync(
    pricesFile,
    stringify({ listed: { input: 1, output: 4 }, 'gpt-4o': { input: 2.5, output: 10, cache_read: 1.25 } }),
  )
  fixture = await startFixture(
    (upstream) => ({
      options: { prices_file: pricesFile },
      models: MODEL_PRICES,
      channels: [
        channel('one', upstream.baseUrl('one'), { models: MODELS, model_mapping: { alias: 'filed' } }),
      ],
      users: [ROOT],
    }),
    { env: { GATEWAY_SECRET: SECRET } },
  )
  const root = { id: 1, accessToken: ROOT.access_token }
  const price = { model: 'put', price: { input: 5, output: 6 } }
  await manage(fixture.gateway.url, root, 'PUT /api/models/price', price)
})
afterAll(async () => {
  await fixture?.close()
  rmSync(folder, { recursive: true })
})

const run = (...args: string[]): Promise<Outcome> => commandOn(fixture.gateway, 'prices', ...args)

describe.each(GATEWAY_STATES)('sluice prices, %s', (manner) => {
  const during = <T>(work: () => Promise<T>): Promise<T> => inGatewayState(manner, fixture.gateway, work)

  test('sluice prices lists each served model with its price and where it is stated', async () => {
    const outcome = await during(() => run('--json'))
    expect(outcome.code, outcome.err).toBe(0)
    const rows = outcome.json() as Row[]
    expect(
      rows.map(({ model, source, price }) => [model, source, price?.['input'], price?.['output']]),
    ).toEqual([
      ['alias', 'alias', '3', '15'],
      ['filed', 'file', '3', '15'],
      ['gpt-4.1', 'file', '2', '8'],
      ['gpt-4o', 'prices_file', '2.5', '10'],
      ['gpt-4o-mini', 'built-in', '0.15', '0.6'],
      ['listed', 'prices_file', '1', '4'],
      ['novel', 'none', undefined, undefined],
      ['put', 'set', '5', '6'],
    ])
    expect(rows.find(({ model }) => model === 'gpt-4o-mini')?.data_date).toMatch(/^\d{4}-\d\d-\d\d$/)
  })

  test('sluice prices --outdated lists the declared prices that differ from the built-in ones, with both prices', async () => {
    const outcome = await during(() => run('--outdated', '--json'))
    // Those without a difference are listed once the data are old.
    const different = (outcome.json() as Row[]).filter(({ differences }) => differences.length > 0)
    // A tenth of the price for a cache read is the default; the data state a quarter.
    expect(different.map(({ model, differences }) => [model, differences])).toEqual([
      ['gpt-4.1', expect.arrayContaining([{ kind: 'cache_read', declared: '0.2', built_in: '0.5' }])],
    ])
  })

  test('sluice prices prints a table, and says the unit of its prices and how many models have none', async () => {
    const { out, err, code } = await during(() => run())
    expect(code, err).toBe(0)
    expect(out).toMatch(/^MODEL +FROM +INPUT +CACHE READ +CACHE WRITE +OUTPUT +OTHER\n/)
    expect(out).toMatch(/^filed +gateway\.yaml +3 +0\.3 +3\.75 +15$/m)
    expect(out).toMatch(/^alias +as filed +3 +0\.3 /m)
    expect(out).toMatch(/^put +set over HTTP +5 /m)
    expect(out).toMatch(/^listed +prices file +1 /m)
    expect(out).toMatch(/^gpt-4o-mini +built in, \d{4}-\d\d-\d\d +0\.15 /m)
    expect(out).toMatch(/^novel +no price$/m)
    expect(err).toBe('Prices of tokens are in USD per million.\n1 of 8 models without a price.\n')
  })
})

test('sluice prices --outdated names the built-in price entries in use that are older than 90 days, with source and date', async () => {
  const clock = dateClock()
  const config = join(folder, 'old.yaml')
  const channels = [
    channel('openai', 'https://api.openai.com/v1', { models: ['gpt-4o', 'listed'] }),
    channel('other', 'http://127.0.0.1:9', { models: ['filed'], protocol: 'rerank' }),
  ]
  writeFileSync(
    config,
    stringify({
      options: { prices_file: 'prices.yaml' },
      models: { filed: { price: { input: 3, output: 15 } } },
      channels,
    }),
  )
  const env = { DATA_DIR: join(folder, 'old'), GATEWAY_SECRET: SECRET, ...clock.env }
  clock.moveTo(Date.parse('2026-11-30'))
  const before = await sluiceProcess(['prices', '--outdated', '--json', '--config', config], env)
  expect(before.json()).toEqual([])
  clock.moveTo(Date.parse('2027-03-10'))
  const after = await sluiceProcess(['prices', '--outdated', '--json', '--config', config], env)
  const rows = after.json() as (Row & {
    sources: { of: string; source: string; date: string; old: boolean }[]
  })[]
  expect(rows.map(({ model }) => model)).toEqual(['gpt-4o', 'listed'])
  expect(rows[0]?.sources).toEqual(
    expect.arrayContaining([
      { of: 'service', source: expect.stringContaining('openai.com'), date: '2026-11-23', old: true },
      { of: 'tools', source: expect.stringContaining('openai.com'), date: '2026-11-23', old: true },
      { of: 'end', source: expect.stringContaining('openai.com'), date: expect.any(String), old: true },
    ]),
  )
  const { out } = await sluiceProcess(['prices', '--outdated', '--config', config], env)
  expect(out).toMatch(/^gpt-4o .*service: openai\.com\/api\/pricing.*, 2026-11-23; /m)
  const shown = await sluiceProcess(['prices', '--config', config], env)
  expect(shown.out).toMatch(/^gpt-4o .* ends on 2027-01-14$/m)
})

test('sluice prices reads gateway.yaml and the prices file alone if no gateway was started yet', async () => {
  const config = join(folder, 'gateway.yaml')
  const channels = [channel('one', 'http://127.0.0.1:9', { models: ['gpt-4.1', 'listed'] })]
  writeFileSync(
    config,
    stringify({ options: { prices_file: 'prices.yaml' }, models: MODEL_PRICES, channels }),
  )
  const outcome = await sluice(['prices', '--json', '--config', config], { DATA_DIR: join(folder, 'data') })
  expect(outcome.code, outcome.err).toBe(0)
  expect((outcome.json() as Row[]).map(({ model, source }) => [model, source])).toEqual([
    ['gpt-4.1', 'file'],
    ['listed', 'prices_file'],
  ])
  writeFileSync(config, 'options: { prices_file: none.yaml }\n')
  const refused = await sluice(['prices', '--config', config], { DATA_DIR: join(folder, 'data') })
  expect(refused.code).toBe(1)
  expect(refused.err).toContain('options.prices_file: expected a file that can be read')
})
