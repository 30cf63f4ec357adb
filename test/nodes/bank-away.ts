import { setTimeout as sleep } from 'node:timers/promises'
import { call, type FullResponse } from '../fixtures/client.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import type { Cluster } from '../fixtures/cluster.ts'
import type { ScriptedUpstream } from '../fixtures/scripted-upstream.ts'
import { ask, retryWhileOverloaded } from '../fixtures/fixture.ts'

/** The number of keys that no node has served yet. */
const COLD_KEYS = 60

/** One key that every node knows, others that none knows, and a limit that is never reached. */
export function warmAndCold(upstream: ScriptedUpstream): Configuration {
  const cold = Array.from({ length: COLD_KEYS }, (_, index) =>
    token(coldKey(index), { remain_quota: 1_000_000 }),
  )
  return {
    rate_limits: { key: { requests: 1_000_000, window: '60s' } },
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [ROOT, user(2, 'ann', [token('warm', { remain_quota: 100_000_000 }), ...cold])],
  }
}

function coldKey(index: number): string {
  return `cold${index}`
}

/** A response, its latency, and its request. */
export interface Timed {
  readonly status: number
  readonly id: string
  readonly code: unknown
  readonly retryAfter: string | undefined
  readonly tookMs: number
}

/** The minimum number of calls with a known key during an outage. */
const MIN_CALLS = 20

/** Milliseconds in which all charges must be in the log after an outage: patience. */
const REPORTED_MS = 120_000

/** Responses during the outage of the bank, and what the bank knew of them afterwards. */
export interface AwayReport {
  readonly warm: readonly Timed[]
  readonly cold: readonly Timed[]
  /** Statuses of `/readyz`, of the nodes in turn. */
  readonly ready: readonly number[]
  /** The number of served calls whose charges the bank never got. */
  readonly unreported: number
  /** Milliseconds until the bank had all charges. */
  readonly backlogMs: number
}

/** Calls the nodes with both kinds of keys during the outage of the bank. */
export async function callWhileAway(
  cluster: Cluster,
  away: {
    readonly forMs: number
    readonly leave: () => unknown
    readonly comeBack: () => unknown
    /** Whether the nodes have noticed the outage, by the statuses of `/readyz` until now. */
    readonly isNoticed?: (ready: readonly number[]) => boolean
  },
): Promise<AwayReport> {
  const { urls } = cluster.fleet
  const unlogged = new Set<string>()
  for (let round = 0; round < 3; round++)
    for (const url of urls) {
      const { status, text, headers } = await retryWhileOverloaded(() =>
        call(url, ask('m', { max_tokens: 50 }), { key: 'warm' }),
      )
      if (status !== 200) throw new Error(`a key was not served before anything happened: ${text}`)
      unlogged.add(String(headers['x-request-id']))
    }
  // Until charges are reported, and with them leases are borrowed ahead.
  for (; unlogged.size > 0; await sleep(100)) await removeLogged(cluster, unlogged)
  await sleep(900)

  const warm: Timed[] = []
  const cold: Timed[] = []
  const ready: number[] = []
  let asked = 0
  await away.leave()
  const endMs = performance.now() + away.forMs
  // A busy machine needs longer for a handful of calls.
  const isAway = (): boolean =>
    performance.now() < endMs || warm.length < MIN_CALLS || away.isNoticed?.(ready) === false
  const clients = urls.flatMap((url) => [
    until(isAway, async () => {
      warm.push(await timed(url, 'warm'))
      await sleep(20)
    }),
    until(isAway, async () => {
      cold.push(await timed(url, coldKey(asked++ % COLD_KEYS)))
      await sleep(300)
    }),
  ])
  const looks = until(isAway, async () => {
    for (const url of urls)
      ready.push((await call(url, undefined, { method: 'GET', path: '/readyz' })).status)
    await sleep(100)
  })
  await Promise.all([...clients, looks])
  await away.comeBack()
  const backMs = performance.now()
  const wanted = new Set(warm.filter(({ status }) => status === 200).map(({ id }) => id))
  for (;;) {
    await removeLogged(cluster, wanted)
    if (wanted.size === 0 || performance.now() - backMs > REPORTED_MS) break
    await sleep(50)
  }
  return { warm, cold, ready, unreported: wanted.size, backlogMs: performance.now() - backMs }
}

/** Removes the ids of calls that are in the log. */
async function removeLogged({ postgres }: Cluster, ids: Set<string>): Promise<void> {
  for (const { id } of await postgres.sql<{ id: string }>('select id from usage_log')) ids.delete(id)
}

async function until(goesOn: () => boolean, work: () => Promise<void>): Promise<void> {
  while (goesOn()) await work()
}

async function timed(url: string, key: string): Promise<Timed> {
  const startMs = performance.now()
  const answer: FullResponse = await call(url, ask('m', { max_tokens: 50 }), { key })
  return {
    status: answer.status,
    id: String(answer.headers['x-request-id']),
    code: answer.status === 200 ? undefined : answer.json().error.code,
    retryAfter: answer.headers['retry-after'],
    tookMs: performance.now() - startMs,
  }
}
