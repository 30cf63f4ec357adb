import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import process from 'node:process'
import { DatabaseSync } from 'node:sqlite'
import { parseArgs } from 'node:util'
import { startCluster } from '../../test/fixtures/cluster.ts'
import { channel, type Configuration, ROOT, token, user } from '../../test/fixtures/configuration.ts'
import { databaseOf } from '../../test/fixtures/database.ts'
import { type RunningGateway, startGateway } from '../../test/fixtures/gateway.ts'
import { randomFrom } from '../../test/fixtures/random.ts'
import { killNodes, restartUntilUp } from '../../test/nodes/fault-injection.ts'
import { measureFilledPrompts } from './filled-prompts.ts'
import { type AgentTurns, agentTurns } from './hold-agents.ts'

/**
 * Measures how much calls hold in relation to what they cost: twenty agents, whose conversations end at 600 KB,
 * on a budget of three times what all of them cost. Each turn is a stream of 500 tokens with `max_tokens` 64,000;
 * nine tenths of its prompt are cached. Then calls with tools whose results fill the prompt, forty at once on a
 * budget for ten. Exits with 1 if a call of an agent is refused, anything is overdrawn, or the median of
 * held ÷ charged exceeds its limit.
 */
const { values: options } = parseArgs({
  options: {
    only: { type: 'string' },
    quick: { type: 'boolean', default: false },
    seed: { type: 'string', default: '1' },
  },
})

const AGENTS = options.quick ? 6 : 20
const TURNS = options.quick ? 5 : 20
const BYTES = options.quick ? 120_000 : 600_000
const MAX_TOKENS = 64_000
const OUTPUT_TOKENS = 500
const FRAMES = 50
/** Time that an answer takes, so that the calls of all agents overlap. */
const ANSWER_MS = 400
const CACHED = 0.9
const BYTES_PER_TOKEN = 4
const UNITS = 500_000
const MAX_ATTEMPTS = 60

interface Prices {
  readonly name: string
  readonly price: { readonly input: number; readonly cache_read: number; readonly output: number }
  /** The largest median of held ÷ charged. */
  readonly limit: number
}

const PRICES: readonly Prices[] = [
  { name: '2 / 0.50 / 8', price: { input: 2, cache_read: 0.5, output: 8 }, limit: 4 },
  { name: '3 / 0.30 / 15', price: { input: 3, cache_read: 0.3, output: 15 }, limit: 7 },
]

const PLACES = ['one node', 'three nodes with kills'] as const
type Place = (typeof PLACES)[number]

/** One run: what is in force, and what is measured. */
interface Run {
  readonly name: string
  readonly place: Place
  readonly prices: Prices
  /** Whether the model thinks as much as it likes, unseen. */
  readonly thinks?: true
  readonly options?: Readonly<Record<string, unknown>>
  /** Whether the limits apply. */
  readonly isChecked: boolean
}

const RUNS: readonly Run[] = [
  ...PRICES.flatMap((prices) =>
    PLACES.map((place): Run => ({ name: `${place}, ${prices.name}`, place, prices, isChecked: true })),
  ),
  ...PRICES.map(
    (prices): Run => ({
      name: `adaptive thinking, ${prices.name}`,
      place: 'one node',
      prices,
      thinks: true,
      isChecked: false,
    }),
  ),
  ...PRICES.map(
    (prices): Run => ({
      name: `before: nothing remembered, the whole maximum held, ${prices.name}`,
      place: 'one node',
      prices,
      thinks: true,
      options: { remember_prompts: '0', hold_wait: '0' },
      isChecked: false,
    }),
  ),
]

/** What an upstream reports for a request of this size. */
function countsOf(bytes: number): { readonly prompt: number; readonly cached: number } {
  const prompt = Math.ceil(bytes / BYTES_PER_TOKEN)
  return { prompt, cached: Math.floor(prompt * CACHED) }
}

/** The exact cost of one turn, in quota units. */
function costOf(bytes: number, { price }: Prices): number {
  const { prompt, cached } = countsOf(bytes)
  const { input, cache_read: read, output } = price
  const dollars = ((prompt - cached) * input + cached * read + OUTPUT_TOKENS * output) / 1e6
  return Math.round(dollars * UNITS)
}

/** A provider that streams 500 tokens and reports a quarter of the bytes as the prompt. */
async function startProvider(): Promise<{ readonly url: string; readonly server: Server }> {
  const server = createServer((request, response) => {
    let bytes = 0
    request.on('data', (chunk: Buffer) => (bytes += chunk.length))
    request.on('end', () => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.flushHeaders()
      const { prompt, cached } = countsOf(bytes)
      const frame = (value: object): void =>
        void response.write(
          `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', ...value })}\n\n`,
        )
      const word = ' word'.repeat(OUTPUT_TOKENS / FRAMES)
      let sent = 0
      const timer = setInterval(() => {
        if (sent++ < FRAMES) frame({ choices: [{ index: 0, delta: { content: word }, finish_reason: null }] })
        else {
          clearInterval(timer)
          frame({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
          const usage = {
            prompt_tokens: prompt,
            completion_tokens: OUTPUT_TOKENS,
            total_tokens: prompt + OUTPUT_TOKENS,
            prompt_tokens_details: { cached_tokens: cached },
          }
          frame({ choices: [], usage })
          response.end('data: [DONE]\n\n')
        }
      }, ANSWER_MS / FRAMES)
      response.on('close', () => clearInterval(timer))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, server }
}

/** What the client of a turn saw. */
interface Turn {
  readonly isRefused: boolean
  readonly code: string
}

/** Makes one turn; a node that is down or being killed is tried again, as clients do. */
async function turnOf(urls: () => readonly string[], body: string, pick: () => number): Promise<Turn> {
  for (let attempt = 1; ; attempt++) {
    const all = urls()
    const url = all[Math.floor(pick() * all.length)] ?? ''
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer sk-agent' },
      body,
    }).catch(() => undefined)
    const text = await answer?.text().catch(() => undefined)
    if (answer && text !== undefined) {
      if (answer.status === 200 && text.includes('[DONE]')) return { isRefused: false, code: '' }
      const [, code = `status ${answer.status}`] = /"code":"(\w+)"/.exec(text) ?? []
      if (answer.status === 403 || code === 'quota_held' || text.includes('quota'))
        return { isRefused: true, code: `${answer.status} ${code}` }
    }
    if (attempt === MAX_ATTEMPTS) return { isRefused: true, code: `no answer (${answer?.status})` }
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

/** The amount of each hold, and the charge of each call. */
interface Ledger {
  /** Samples what is held now. */
  readonly holds: () => Promise<readonly { readonly id: string; readonly amount: number }[]>
  readonly charges: () => Promise<readonly { readonly id: string; readonly quota: number }[]>
  readonly remaining: () => Promise<number>
}

interface Result {
  readonly run: Run
  readonly refused: number
  readonly codes: readonly string[]
  readonly overdrawn: number
  readonly exceeded: number
  readonly median: number
  readonly calls: number
}

function configurationOf(run: Run, url: string, budget: number): Configuration {
  const model = modelOf(run)
  return {
    options: { max_calls: 500, ...run.options },
    models: { [model]: { vendor: 'acme', price: run.prices.price } },
    channels: [channel('m', url, { models: [model] })],
    users: [ROOT, user(2, 'agents', [token('agent', { remain_quota: budget })])],
  }
}

async function measure(run: Run): Promise<Result> {
  await using opened = new AsyncDisposableStack()
  const provider = await startProvider()
  opened.defer(() => void provider.server.close())
  opened.defer(() => provider.server.closeAllConnections())
  const agents = Array.from({ length: AGENTS }, (_, index) => turnsOf(index, run))
  let cost = 0
  for (const { count, body } of agents)
    for (let turn = 0; turn < count; turn++) cost += costOf(Buffer.byteLength(body(turn)), run.prices)
  const budget = 3 * cost
  const config = configurationOf(run, provider.url, budget)
  const held = new Map<string, number>()
  const end = new AbortController()
  const { urls, ledger, faults, exceeded, settle } = await place(
    run,
    config,
    opened,
    () => end.signal.aborted,
  )
  const sampling = (async (): Promise<void> => {
    while (!end.signal.aborted) {
      for (const { id, amount } of await ledger.holds().catch(() => []))
        held.set(id, Math.max(held.get(id) ?? 0, amount))
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  })()
  const turns = await Promise.all(
    agents.map(async ({ count, body }, index) => {
      const random = randomFrom(Number(options.seed) * 1000 + index)
      const seen: Turn[] = []
      for (let turn = 0; turn < count; turn++) seen.push(await turnOf(urls, body(turn), random))
      return seen
    }),
  )
  end.abort()
  await Promise.all([sampling, faults])
  await settle()
  const charges = await ledger.charges()
  const ratios = charges.flatMap(({ id, quota }) => {
    const amount = held.get(id)
    return amount === undefined || quota === 0 ? [] : [amount / quota]
  })
  const refused = turns.flat().filter(({ isRefused }) => isRefused)
  return {
    run,
    refused: refused.length,
    codes: [...new Set(refused.map(({ code }) => code))],
    overdrawn: Math.max(0, -(await ledger.remaining())),
    exceeded: await exceeded(),
    median: ratios.toSorted((one, other) => one - other)[Math.floor(ratios.length / 2)] ?? Number.NaN,
    calls: charges.length,
  }
}

function turnsOf(index: number, run: Run): AgentTurns {
  return agentTurns({
    name: `${options.seed}-${index}`,
    turns: TURNS,
    bytes: BYTES,
    fields: {
      model: modelOf(run),
      max_tokens: MAX_TOKENS,
      stream: true,
      stream_options: { include_usage: true },
      ...(run.thinks && { reasoning_effort: 'high' }),
    },
  })
}

/** Claude may think unseen as long as its maximum allows. */
function modelOf({ thinks }: Run): string {
  return thinks ? 'claude-sonnet-4-6' : 'm'
}

/** A running gateway of one kind. */
interface Ground {
  readonly urls: () => readonly string[]
  readonly ledger: Ledger
  readonly faults: Promise<unknown>
  readonly exceeded: () => Promise<number>
  /** Waits until everything is charged. */
  readonly settle: () => Promise<unknown>
}

async function place(
  run: Run,
  config: Configuration,
  opened: AsyncDisposableStack,
  isOver: () => boolean,
): Promise<Ground> {
  if (run.place === 'three nodes with kills') return onNodes(config, opened, isOver)
  const gateway = await startGateway({ config, env: { LOG_LEVEL: 'warn' } })
  opened.defer(() => gateway.discard())
  const database = databaseOf(gateway.dataDir)
  return {
    urls: () => [gateway.url],
    ledger: {
      holds: async () => database.openHolds(),
      charges: async () => database.usage().filter(({ reason }) => reason === 'complete'),
      remaining: async () => database.token('token-agent').remain_quota,
    },
    faults: Promise.resolve(),
    exceeded: () => exceededOn([gateway]),
    settle: () => untilNone(async () => database.openHolds().length),
  }
}

async function onNodes(
  config: Configuration,
  opened: AsyncDisposableStack,
  isOver: () => boolean,
): Promise<Ground> {
  const cluster = await startCluster({ nodes: 3, configure: () => config })
  opened.defer(() => cluster.clear())
  const { fleet, postgres } = cluster
  return {
    urls: () => fleet.urls,
    ledger: {
      holds: async () => fleet.nodes.flatMap(({ dataDir }) => openHoldsIn(join(dataDir, 'node.db'))),
      charges: async () =>
        (await postgres.sql(`select id, quota from usage_log where reason = 'complete'`)) as {
          readonly id: string
          readonly quota: number
        }[],
      async remaining() {
        const [row] = await postgres.sql(
          `select remain_quota as remain from tokens where name = 'token-agent'`,
        )
        return Number(row?.['remain'])
      },
    },
    faults: killNodes(cluster, randomFrom(Number(options.seed)), isOver),
    exceeded: () => exceededOn(fleet.nodes),
    async settle() {
      await Promise.all(fleet.nodes.map(restartUntilUp))
      await fleet.stop()
    },
  }
}

/** The open holds in the file of a node; none while it is killed or started. */
function openHoldsIn(file: string): { readonly id: string; readonly amount: number }[] {
  try {
    using database = new DatabaseSync(file, { readOnly: true, timeout: 1000 })
    return database.prepare('select id, amount from holds').all() as never
  } catch {
    return []
  }
}

async function exceededOn(nodes: readonly RunningGateway[]): Promise<number> {
  const texts = await Promise.all(
    nodes.map(async ({ url }) => (await fetch(`${url}/metrics`).catch(() => undefined))?.text() ?? ''),
  )
  return texts
    .flatMap((text) => [...text.matchAll(/^sluice_hold_exceeded_total\{[^}]*\} (\d+)/gm)])
    .reduce((sum, [, count]) => sum + Number(count), 0)
}

async function untilNone(count: () => Promise<number>): Promise<void> {
  for (let attempt = 0; attempt < 200 && (await count()) > 0; attempt++)
    await new Promise((resolve) => setTimeout(resolve, 50))
}

async function main(): Promise<number> {
  let failed = 0
  console.log(`${AGENTS} agents, ${TURNS} turns each, up to ${BYTES} bytes, a budget of three times the cost`)
  for (const run of RUNS) {
    if (options.only !== undefined && !run.name.includes(options.only)) continue
    const { refused, codes, overdrawn, exceeded, median, calls } = await measure(run)
    // The limits are for long conversations.
    const isGood = refused === 0 && overdrawn === 0 && (options.quick || median <= run.prices.limit)
    if (run.isChecked && !isGood) failed = 1
    console.log(
      `${run.name}: ${calls} calls, refused ${refused}${codes.length > 0 ? ` (${codes.join(', ')})` : ''}, ` +
        `overdrawn ${overdrawn}, charged above the hold ${exceeded}, held ÷ charged ${median.toFixed(2)}` +
        (run.isChecked ? ` (limit ${run.prices.limit})${isGood ? '' : ' FAILED'}` : ''),
    )
  }
  for (const { name, answered, refused, overdrawn, exceeded } of await measureFilledPrompts(
    Number(options.seed),
    options.only,
  )) {
    const isGood = answered > 0 && overdrawn === 0
    if (!isGood) failed = 1
    console.log(
      `${name}: answered ${answered}, refused ${refused}, overdrawn ${overdrawn}, ` +
        `charged above the hold ${exceeded}${isGood ? '' : ' FAILED'}`,
    )
  }
  return failed
}

process.exitCode = await main()
