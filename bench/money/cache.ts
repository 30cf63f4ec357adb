import { once } from 'node:events'
import { createServer, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { type Simulator, startSimulator } from '@sluice/simulator'
import { startCluster } from '../../test/fixtures/cluster.ts'
import { channel, type Configuration, ROOT, token, user } from '../../test/fixtures/configuration.ts'
import { databaseOf } from '../../test/fixtures/database.ts'
import { startGateway } from '../../test/fixtures/gateway.ts'
import { randomFrom } from '../../test/fixtures/random.ts'
import { type Client, type SessionRequest, sessionTurns } from './cache-sessions.ts'

/**
 * Measures what a gateway costs its users in prompt caches: twenty sessions of agents with thirty turns each, called
 * directly with one account, and through the gateway with several keys, channels and nodes, and through
 * conversions. The simulated providers keep a cache for each account and bill it as the vendors do. `--check` fails if
 * gateway ÷ direct exceeds its limit with affinity.
 */
const { values: options } = parseArgs({
  options: {
    only: { type: 'string' },
    quick: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
  },
})

const LIMIT = 1.02
// As many as the run of all at once has roads.
const SESSIONS = options.quick ? 7 : 20
const TURNS = options.quick ? 10 : 30
/** Time between two turns of a session, by the clock of the providers. */
const TURN_MS = 20_000
const UNITS = 500_000
const INSTANT = { firstTokenMs: 0, tokenMs: 0, maxWholeMs: 0 }

/** Dollars for a million tokens. */
interface Price {
  readonly input: number
  readonly cache_read: number
  readonly cache_write: number
  readonly output: number
}

/** A provider, and how the gateway speaks with it. */
interface Upstream {
  readonly model: string
  readonly price: Price
  readonly protocol: 'messages' | 'responses' | 'chat' | 'gemini' | 'converse'
  /** Settings of its channels beside those of all. */
  readonly channel?: object
  /** Base URL of its simulation. */
  readonly url: (site: Site) => string
  /** A call without the gateway, if that is another than the client's own. */
  readonly direct?: (model: string, request: SessionRequest) => SessionRequest
}

/** The simulated providers, and the front of those that have other addresses. */
interface Site {
  readonly simulator: Simulator
  readonly azureUrl: string
}

const CLAUDE: Price = { input: 3, cache_read: 0.3, cache_write: 3.75, output: 15 }
const GPT: Price = { input: 2, cache_read: 0.2, cache_write: 2.5, output: 12 }
const BEDROCK = { provider: 'bedrock', region: 'eu-central-1' }

/** Claude at Bedrock names the model in the path. */
function invoked(model: string, { headers, body }: SessionRequest): SessionRequest {
  const { model: _, ...rest } = body as { readonly model: string }
  return {
    path: `/model/${model}/invoke`,
    headers,
    body: { ...rest, anthropic_version: 'bedrock-2023-05-31' },
  }
}

/** The upstreams: a model of each, with its list price. */
const UPSTREAMS = {
  messages: {
    model: 'claude-sonnet-4-6',
    price: CLAUDE,
    protocol: 'messages',
    url: ({ simulator }) => simulator.messagesUrl,
  },
  responses: {
    model: 'gpt-5.6',
    price: GPT,
    protocol: 'responses',
    url: ({ simulator }) => simulator.responsesUrl,
  },
  chat: {
    model: 'gpt-5.1',
    price: { input: 1.25, cache_read: 0.125, cache_write: 1.25, output: 10 },
    protocol: 'chat',
    url: ({ simulator }) => simulator.chatUrl,
  },
  gemini: {
    model: 'gemini-2.5-pro',
    price: { input: 1.25, cache_read: 0.125, cache_write: 1.25, output: 10 },
    protocol: 'gemini',
    url: ({ simulator }) => simulator.geminiUrl,
  },
  bedrock: {
    model: 'anthropic.claude-sonnet-4-6',
    price: CLAUDE,
    protocol: 'messages',
    channel: BEDROCK,
    url: ({ simulator }) => simulator.bedrockUrl,
    direct: invoked,
  },
  converse: {
    model: 'anthropic.claude-sonnet-4-5',
    price: CLAUDE,
    protocol: 'converse',
    channel: BEDROCK,
    url: ({ simulator }) => simulator.bedrockUrl,
    direct: invoked,
  },
  azure: {
    model: 'gpt-5.6-deployed',
    price: GPT,
    protocol: 'responses',
    channel: { provider: 'azure' },
    url: ({ azureUrl }) => azureUrl,
    direct: (_, request) => ({ ...request, path: `/openai/v1${request.path}` }),
  },
} as const satisfies Readonly<Record<string, Upstream>>

type UpstreamName = keyof typeof UPSTREAMS

const upstreamOf = ({ to }: Road): Upstream => UPSTREAMS[to]

/** A session: how the client speaks, and its upstream. */
interface Road {
  readonly client: Client
  readonly to: UpstreamName
  /** The client whose direct calls it is compared with. */
  readonly direct: Client
}

const NATIVE: readonly Road[] = [
  { client: 'claude', to: 'messages', direct: 'claude' },
  { client: 'codex', to: 'responses', direct: 'codex' },
  { client: 'generic', to: 'chat', direct: 'generic' },
]

const GEMINI: Road = { client: 'gemini', to: 'gemini', direct: 'gemini' }
const INVOKED: Road = { client: 'claude', to: 'bedrock', direct: 'claude' }
const CONVERSED: Road = { client: 'claude', to: 'converse', direct: 'claude' }
const AZURE: Road = { client: 'codex', to: 'azure', direct: 'codex' }

const CONVERSIONS: readonly Road[] = [
  { client: 'marked', to: 'messages', direct: 'claude' },
  { client: 'claude', to: 'responses', direct: 'codex' },
  { client: 'claude', to: 'chat', direct: 'generic' },
  { client: 'generic', to: 'responses', direct: 'codex' },
]

/** What a measurement runs on. */
interface Run {
  readonly name: string
  readonly roads: readonly Road[]
  readonly keys: number
  readonly channels?: number
  readonly nodes?: number
}

/** What a client speaks, in the names of runs. */
const CLIENT_NAMES: Readonly<Record<Client, string>> = {
  claude: 'messages',
  marked: 'marked chat',
  generic: 'chat',
  codex: 'responses',
  gemini: 'gemini',
}

function converted(road: Road, keys: 1 | 3): Run {
  const client = CLIENT_NAMES[road.client]
  return { name: `${client} → ${road.to}, ${keys === 1 ? 'one key' : 'three keys'}`, roads: [road], keys }
}

const RUNS: readonly Run[] = [
  { name: 'one key', roads: NATIVE, keys: 1 },
  { name: 'three keys', roads: NATIVE, keys: 3 },
  ...NATIVE.map((road): Run => ({ name: `three keys, ${road.client} alone`, roads: [road], keys: 3 })),
  { name: 'two channels', roads: NATIVE, keys: 1, channels: 2 },
  { name: 'three keys, two nodes', roads: NATIVE, keys: 3, nodes: 2 },
  ...CONVERSIONS.slice(0, 2).map((road) => converted(road, 1)),
  ...CONVERSIONS.map((road) => converted(road, 3)),
  { name: 'Gemini, three keys', roads: [GEMINI], keys: 3 },
  { name: 'Bedrock, three keys', roads: [INVOKED], keys: 3 },
  converted(CONVERSED, 3),
  { name: 'Azure, three keys', roads: [AZURE], keys: 3 },
  {
    name: 'all at once: three keys, two channels, two nodes, all providers, one conversion',
    roads: [...NATIVE, GEMINI, INVOKED, AZURE, CONVERSIONS[0] as Road],
    keys: 3,
    channels: 2,
    nodes: 2,
  },
]

let time = Date.now()

/** Makes every turn of all sessions; those of one turn run at once. */
async function converse(
  roads: readonly Road[],
  call: (road: Road, request: SessionRequest) => Promise<void>,
  clientOf: (road: Road) => Client,
): Promise<void> {
  const sessions = Array.from({ length: SESSIONS }, (_, index) => {
    const road = roads[index % roads.length] as Road
    return { road, request: sessionTurns(clientOf(road), `session-${index}`, TURNS) }
  })
  const random = randomFrom(1)
  for (let turn = 0; turn < TURNS; turn++) {
    // In another order each time, because keys that are taken in turn would otherwise fit the sessions by chance.
    const order = sessions
      .map((session) => ({ session, at: random() }))
      .toSorted((one, other) => one.at - other.at)
      .map(({ session }) => session)
    await Promise.all(
      order.map(({ road, request }) => {
        return call(road, request(upstreamOf(road).model, turn))
      }),
    )
    time += TURN_MS
  }
}

async function post(url: string, { path, headers, body }: SessionRequest, key: string): Promise<Answer> {
  const answer = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify(body),
  })
  const text = await answer.text()
  if (answer.status !== 200) throw new Error(`${url}${path} answered ${answer.status}: ${text.slice(0, 300)}`)
  return JSON.parse(text) as Answer
}

interface Answer {
  readonly usage?: Usage
  readonly usageMetadata?: GeminiUsage
}

interface GeminiUsage {
  readonly promptTokenCount: number
  readonly cachedContentTokenCount?: number
  readonly candidatesTokenCount?: number
  readonly thoughtsTokenCount?: number
}

/** Gemini's usage under the names of chat. */
function asUsage(usage: GeminiUsage): Usage {
  return {
    prompt_tokens: usage.promptTokenCount,
    completion_tokens: (usage.candidatesTokenCount ?? 0) + (usage.thoughtsTokenCount ?? 0),
    prompt_tokens_details: { cached_tokens: usage.cachedContentTokenCount ?? 0 },
  }
}

/** The usage of an answer in chat, messages or responses. */
interface Usage {
  readonly input_tokens?: number
  readonly output_tokens?: number
  readonly cache_read_input_tokens?: number
  readonly cache_creation_input_tokens?: number
  readonly input_tokens_details?: { readonly cached_tokens: number; readonly cache_write_tokens: number }
  readonly prompt_tokens?: number
  readonly completion_tokens?: number
  readonly prompt_tokens_details?: { readonly cached_tokens: number; readonly cache_write_tokens?: number }
}

/** The charge of a call in quota units, as its provider's list prices make it. */
function chargeOf(usage: Usage, { input, cache_read, cache_write, output }: Price): number {
  const details = usage.input_tokens_details ?? usage.prompt_tokens_details
  const read = details?.cached_tokens ?? usage.cache_read_input_tokens ?? 0
  const written = details?.cache_write_tokens ?? usage.cache_creation_input_tokens ?? 0
  const all = usage.prompt_tokens ?? usage.input_tokens ?? 0
  const plain = details ? all - read - written : all
  const made = usage.completion_tokens ?? usage.output_tokens ?? 0
  const dollars = (plain * input + read * cache_read + written * cache_write + made * output) / 1e6
  return Math.round(dollars * UNITS)
}

async function withProviders<Result>(use: (site: Site) => Promise<Result>): Promise<Result> {
  const models = {
    messages: [UPSTREAMS.messages.model],
    responses: [UPSTREAMS.responses.model, UPSTREAMS.azure.model],
    chat: [UPSTREAMS.chat.model],
    gemini: [UPSTREAMS.gemini.model],
    bedrock: [UPSTREAMS.bedrock.model, UPSTREAMS.converse.model],
  }
  await using opened = new AsyncDisposableStack()
  const simulator = await startSimulator(INSTANT, { models, now: () => time, requestsPerMachine: 15 })
  opened.defer(() => simulator.close())
  const front = await azureFront(simulator.responsesUrl)
  opened.defer(() => front.close())
  return await use({ simulator, azureUrl: front.url })
}

/** Azure's address and header before the simulated OpenAI. */
async function azureFront(url: string): Promise<{ readonly url: string; close(): void }> {
  const { hostname, port, pathname } = new URL(url)
  const server = createServer((incoming, outgoing) => {
    const key = incoming.headers['api-key']
    const headers = {
      ...incoming.headers,
      ...(key !== undefined && { authorization: `Bearer ${String(key)}` }),
    }
    const path = String(incoming.url).replace('/openai/v1', pathname)
    const forwarded = send({ hostname, port, path, method: incoming.method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(outgoing)
    })
    forwarded.on('error', () => outgoing.destroy())
    incoming.pipe(forwarded)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = (): void => {
    server.close()
    server.closeAllConnections()
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close }
}

/** What the sessions cost with one account and without a gateway. */
function directCost(roads: readonly Road[]): Promise<number> {
  return withProviders(async (site) => {
    let cost = 0
    await converse(
      roads,
      async (road, own) => {
        const { model, price, url, direct } = upstreamOf(road)
        const { usage, usageMetadata } = await post(url(site), direct?.(model, own) ?? own, 'own')
        cost += chargeOf(usage ?? asUsage(usageMetadata!), price)
      },
      ({ direct }) => direct,
    )
    return cost
  })
}

function configurationOf(run: Run, site: Site, hasAffinity: boolean): Configuration {
  const names = [...new Set(run.roads.map(({ to }) => to))]
  const channels = names.flatMap((name) =>
    Array.from({ length: run.channels ?? 1 }, (_, at) => {
      const upstream: Upstream = UPSTREAMS[name]
      return channel(`${name}-${at}`, upstream.url(site), {
        protocol: upstream.protocol,
        keys: Array.from({ length: run.keys }, (__, key) => `account-of-sessions-${at}-${key}`),
        models: [upstream.model],
        ...upstream.channel,
      })
    }),
  )
  return {
    options: { affinity: { enabled: hasAffinity } },
    models: Object.fromEntries(
      Object.values(UPSTREAMS).map(({ model, price: { cache_write, ...price } }) => [
        model,
        { vendor: 'acme', price: { ...price, cache_write_5m: cache_write } },
      ]),
    ),
    channels,
    users: [ROOT, user(2, 'agents', [token('agent')])],
  }
}

/** What the ledger charges for the sessions through the gateway. */
function gatewayCost(run: Run, hasAffinity: boolean): Promise<number> {
  return withProviders(async (site) => {
    const config = configurationOf(run, site, hasAffinity)
    await using opened = new AsyncDisposableStack()
    const { urls, charged } = await gatewayFor(run, config, opened)
    let next = 0
    await converse(
      run.roads,
      async (_, own) => {
        const url = urls[next++ % urls.length] ?? ''
        const version = own.path.startsWith('/models/') ? '/v1beta' : '/v1'
        await post(url, { ...own, path: version + own.path }, 'sk-agent')
      },
      ({ client }) => client,
    )
    // Awaited here, because the gateway ends with this block.
    return await charged()
  })
}

async function gatewayFor(
  run: Run,
  config: Configuration,
  opened: AsyncDisposableStack,
): Promise<{ readonly urls: readonly string[]; readonly charged: () => Promise<number> }> {
  if (run.nodes !== undefined) {
    const cluster = await startCluster({ nodes: run.nodes, configure: () => config, hasProxies: false })
    opened.defer(() => cluster.clear())
    const charged = async (): Promise<number> => {
      await cluster.fleet.stop()
      const [row] = await cluster.postgres.sql('select sum(quota) as quota, count(*) as calls from usage_log')
      return completeSum(Number(row?.['quota']), Number(row?.['calls']))
    }
    return { urls: cluster.fleet.urls, charged }
  }
  const gateway = await startGateway({ config, env: { LOG_LEVEL: 'warn' } })
  opened.defer(() => gateway.discard())
  const charged = async (): Promise<number> => {
    const database = databaseOf(gateway.dataDir)
    // The rows are written behind the answers.
    for (let attempt = 0; attempt < 100 && database.usage().length < SESSIONS * TURNS; attempt++)
      await new Promise((resolve) => setTimeout(resolve, 50))
    const rows = database.usage()
    return completeSum(
      rows.reduce((sum, { quota }) => sum + quota, 0),
      rows.length,
    )
  }
  return { urls: [gateway.url], charged }
}

function completeSum(quota: number, calls: number): number {
  if (calls !== SESSIONS * TURNS)
    throw new Error(`the ledger has ${calls} calls, ${SESSIONS * TURNS} were made`)
  return quota
}

async function main(): Promise<number> {
  let failed = 0
  console.log(`${SESSIONS} sessions of ${TURNS} turns; gateway ÷ direct, in quota units`)
  for (const run of RUNS) {
    if (options.only !== undefined && !run.name.includes(options.only)) continue
    const direct = await directCost(run.roads)
    const off = await gatewayCost(run, false)
    const on = await gatewayCost(run, true)
    const isAbove = on > direct * LIMIT
    if (isAbove) failed = 1
    const ratio = (cost: number): string => `${(cost / direct).toFixed(3)} (${cost})`
    console.log(
      `${run.name}: direct ${direct}, affinity off ${ratio(off)}, on ${ratio(on)}${isAbove ? ' ABOVE' : ''}`,
    )
  }
  return options.check ? failed : 0
}

process.exitCode = await main()
