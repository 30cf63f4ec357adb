import { readFileSync, writeFileSync } from 'node:fs'
import process from 'node:process'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { call } from '../fixtures/client.ts'
import { AMPLE, ROOT, token, user } from '../fixtures/configuration.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { dateClock, type MovedClock } from '../fixtures/moved-clock.ts'
import { type Network, PUBLIC_ADDRESS, startNetwork } from '../fixtures/network.ts'
import { ACCOUNT, REGION, startBedrock } from '../fixtures/providers/bedrock.ts'
import { type Double, startDouble } from '../fixtures/providers/double.ts'
import { startVertex } from '../fixtures/providers/vertex.ts'
import { AZURE_EXAMPLES, OPENAI_EXAMPLES } from './openai-examples.ts'
import {
  ANTHROPIC_EXAMPLES,
  BEDROCK_EXAMPLES,
  GEMINI_EXAMPLES,
  OTHER_EXAMPLES,
  VERTEX_EXAMPLES,
} from './other-examples.ts'
import type { DocumentedExample, PricedCall, Upstream } from './priced-call.ts'

/** One unit is a millionth of a dollar. */
const UNITS_PER_USD = 1_000_000
/** A day between two changes of prices. */
const DAY = '2026-11-24'
const NOON = 12
const PAGE = new URL('../../docs/price-pages.md', import.meta.url)
/** The ratio of a second group, which multiplies what the page says. */
const DEAR = 1.3
const ADA = { id: 3, accessToken: 'the-access-token-of-ada' }

const named = (
  provider: string,
  examples: readonly Omit<DocumentedExample, 'provider'>[],
): DocumentedExample[] => examples.map((example) => ({ provider, ...example }))

const EXAMPLES: readonly DocumentedExample[] = [
  ...named('OpenAI', OPENAI_EXAMPLES),
  ...named('Azure', AZURE_EXAMPLES),
  ...named('Anthropic', ANTHROPIC_EXAMPLES),
  ...named('Gemini', GEMINI_EXAMPLES),
  ...named('Vertex', VERTEX_EXAMPLES),
  ...named('Bedrock', BEDROCK_EXAMPLES),
  ...OTHER_EXAMPLES,
]

/** Hosts, with the dialects in which their channels are called. */
const HOSTS: Readonly<Partial<Record<Upstream, readonly string[]>>> = {
  'api.openai.com': ['chat', 'responses'],
  'api.anthropic.com': ['messages'],
  'generativelanguage.googleapis.com': ['gemini'],
  'api.deepseek.com': ['chat'],
  'api.x.ai': ['responses'],
  'api.cohere.com': ['rerank'],
}
/** Fields that requests of the examples name. */
const ALLOWED = ['service_tier', 'speed', 'inference_geo']

interface Row {
  readonly quota: number
  readonly cost: readonly { readonly kind: string; readonly count: number; readonly price_usd: string }[]
}

/** Lines whose price is for a single one; that of all others is per million. */
const SINGLE = new Set([
  'request',
  'second',
  'search_unit',
  'image',
  'web_search',
  'file_search',
  'code_interpreter',
  'code_execution',
  'google_search',
])

/** The charge that the lines of a row add up to: count × price × ratio, in units. */
function chargeByLines({ cost }: Row, ratio: number): number {
  const usd = cost.reduce(
    (sum, { kind, count, price_usd: price }) =>
      sum + (count * Number(price)) / (SINGLE.has(kind) ? 1 : 1_000_000),
    0,
  )
  // Without the noise of binary fractions.
  return Math.round(Number((usd * ratio * UNITS_PER_USD).toFixed(6)))
}

let now: PricedCall | undefined
const answer = () => ({
  ...(now?.headers && { headers: now.headers }),
  body: Buffer.isBuffer(now?.answer) ? now.answer : JSON.stringify(now?.answer),
})
const charged = new Map<DocumentedExample, number>()
const closing: (() => unknown)[] = []
let gateways: { readonly hosts: RunningGateway; readonly clouds: RunningGateway }
let clock: MovedClock

beforeAll(async () => {
  const keep = <T extends Double>(double: T): T => (closing.push(() => double.close()), double)
  const hosts = keep(await startDouble(answer))
  const vertex = keep(await startVertex(answer))
  const bedrock = keep(await startBedrock(() => ({ whole: now?.answer as object })))
  const network: Network = await startNetwork(() => [PUBLIC_ADDRESS], Number(new URL(hosts.url).port))
  closing.push(() => network.stop())
  clock = dateClock((cleanUp) => closing.push(cleanUp))
  moveTo(NOON)
  const start = async (channels: readonly object[], env: Record<string, string>) => {
    const gateway = await startGateway({
      config: {
        options: { quota_per_unit: UNITS_PER_USD, media: { allow_private_networks: true } },
        models: Object.fromEntries(modelsAt('bedrock').map((name) => [name, { vendor: 'aws' }])),
        groups: {
          default: { ratio: 1 },
          dear: { ratio: DEAR },
          azure: { ratio: 1 },
          dearAzure: { ratio: DEAR },
        },
        channels: channels as Record<string, unknown>[],
        users: [
          ROOT,
          user(2, 'ann', [token('default')], { quota: AMPLE }),
          user(4, 'bob', [token('dear')], { quota: AMPLE, group: 'dear' }),
          user(5, 'cas', [token('azure')], { quota: AMPLE, group: 'azure' }),
          user(6, 'dan', [token('dearAzure')], { quota: AMPLE, group: 'dearAzure' }),
          user(ADA.id, 'ada', [], { access_token: ADA.accessToken, role: 10 }),
        ],
      },
      env,
    })
    closing.unshift(() => gateway.discard())
    return gateway
  }
  const flags = [network.env['NODE_OPTIONS'], clock.env['NODE_OPTIONS']].join(' ')
  gateways = {
    // The clouds verify the time of a request, so that their gateway has the clock of this machine.
    clouds: await start(
      [
        {
          name: 'bedrock',
          provider: 'bedrock',
          region: REGION,
          base_url: bedrock.url,
          keys: [`${ACCOUNT.id}:${ACCOUNT.secret}`],
          protocol: 'converse',
          groups: ['default', 'dear'],
          models: modelsAt('bedrock'),
        },
        {
          name: 'vertex',
          provider: 'vertex',
          location: 'europe-west4',
          base_url: vertex.url,
          keys: [vertex.serviceAccount],
          protocol: 'gemini',
          groups: ['default', 'dear'],
          models: modelsAt('vertex'),
        },
      ],
      {},
    ),
    hosts: await start(
      [
        ...Object.entries(HOSTS).map(([host, protocol]) => ({
          name: host,
          base_url: `http://${host}/v1`,
          keys: ['a-key'],
          protocol,
          allow: ALLOWED,
          groups: ['default', 'dear'],
          models: modelsAt(host as Upstream),
        })),
        {
          name: 'azure',
          provider: 'azure',
          base_url: hosts.url,
          keys: ['key-0123456789abcdef'],
          protocol: 'chat',
          groups: ['azure', 'dearAzure'],
          models: modelsAt('azure'),
        },
      ],
      { ...network.env, ...clock.env, NODE_OPTIONS: flags },
    ),
  }
})
afterAll(async () => {
  for (const close of closing) await close()
})

function modelsAt(upstream: Upstream): string[] {
  return [
    ...new Set(
      EXAMPLES.filter(({ call: { upstream: at } }) => at === upstream).map(({ call: { model } }) => model),
    ),
  ]
}

/** The row of a call with the key of a group. */
async function rowOf(url: string, group: string, { body, path }: PricedCall): Promise<Row> {
  const answered = await call(url, body, { key: group, path })
  expect(answered.status, answered.text).toBe(200)
  const { data } = await manage<Row>(url, ADA, `GET /api/log/${String(answered.headers['x-request-id'])}`)
  return data
}

function moveTo(hour: number): void {
  clock.moveTo(Date.parse(`${DAY}T${String(hour).padStart(2, '0')}:00:00Z`))
}

describe.each([...new Set(EXAMPLES.map(({ provider }) => provider))])('the price page of %s', (name) => {
  const examples = EXAMPLES.filter(({ provider }) => provider === name)
  test.each(examples.map((example) => [example.example, example] as const))(
    "the gateway charges what the vendor's price page says, exact to the last quota unit: %s",
    async (_, example) => {
      const { usd, tier = 'standard', region } = example
      const { upstream, hour } = example.call
      const { url } = upstream in HOSTS || upstream === 'azure' ? gateways.hosts : gateways.clouds
      const group = upstream === 'azure' ? 'azure' : 'default'
      now = example.call
      moveTo(hour ?? NOON)
      const row = await rowOf(url, group, example.call)
      charged.set(example, row.quota)
      expect(row).toMatchObject({
        quota: Math.round(usd * UNITS_PER_USD),
        service_tier: tier,
        price_incomplete: false,
        ...(region !== undefined && { region }),
      })
      expect(chargeByLines(row, 1)).toBe(row.quota)
      const dear = await rowOf(url, group === 'azure' ? 'dearAzure' : 'dear', example.call)
      expect(dear.quota).toBe(chargeByLines(row, DEAR))
      expect(chargeByLines(dear, DEAR)).toBe(dear.quota)
    },
  )
})

test("docs/price-pages.md lists each tested example of a vendor's price page, with its price and the charge", () => {
  const text = readFileSync(PAGE, 'utf8')
  const start = text.indexOf('| Provider |')
  const renewed = `${text.slice(0, start)}${table()}`
  if (process.env['UPDATE_PRICE_PAGES'] !== undefined) {
    process.stdout.write(table())
    writeFileSync(PAGE, renewed)
  }
  expect(charged.size).toBe(EXAMPLES.length)
  expect(readFileSync(PAGE, 'utf8')).toBe(renewed)
})

function table(): string {
  const rows = EXAMPLES.map((example) => {
    const { provider, example: text, page, usd } = example
    const ledger = (charged.get(example) ?? Number.NaN) / UNITS_PER_USD
    return `| ${provider} | ${text} | ${plain(usd)} | ${plain(ledger)} | \`${page}\` |`
  })
  return [
    '| Provider | Example | Page, USD | Ledger, USD | Source |',
    '| --- | --- | ---: | ---: | --- |',
    ...rows,
    '',
  ].join('\n')
}

/** USD with as many places as they need. */
function plain(usd: number): string {
  return usd.toFixed(6).replace(/0{1,4}$/, '')
}
