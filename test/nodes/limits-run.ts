import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { call } from '../fixtures/client.ts'
import { plainConfiguration } from '../fixtures/configuration.ts'
import { type AdmittedCall, maxWithin } from '../fixtures/counting-nodes.ts'
import { type Cluster, startCluster } from '../fixtures/cluster.ts'
import { ask } from '../fixtures/fixture.ts'
import { metricsOf } from '../operations/metrics-text.ts'
import { untilAcquainted } from './fixture.ts'

/** A limit over all nodes, and its clients. */
export interface LimitsPlan {
  readonly requests: number
  readonly windowMs: number
  /** The number of clients at each node. */
  readonly clients: readonly number[]
  readonly windows: number
  /** If false, the nodes have PostgreSQL only. */
  readonly hasRedis?: boolean
  /** The program's folder, if it is not the program of all tests. */
  readonly root?: string
  /** Causes faults of Redis during the run. */
  readonly meanwhile?: (cluster: Cluster) => Promise<void>
}

/** The admitted calls. */
export interface LimitsReport {
  /** The admitted share of the limit: certainly in the fullest window, and over the whole time. */
  readonly fullest: number
  readonly mean: number
  readonly admitted: number
  readonly refused: number
  /** The number of calls that a node counted alone, because Redis did not answer in time. */
  readonly alone: number
  /** Admitted calls, by window from the start. */
  readonly byWindow: readonly number[]
  /** Milliseconds until as many calls as the limit allows were admitted at the start. */
  readonly fillMs: number
}

/** Milliseconds before a refused client tries again. */
const RETRY_DELAY_MS = 200

/** Sends far more calls than a key's limit allows to three nodes, unevenly. */
export async function exceedLimit(plan: LimitsPlan): Promise<LimitsReport> {
  const { requests, windowMs, clients, windows, hasRedis = true, root, meanwhile } = plan
  const cluster = await startCluster({
    nodes: clients.length,
    configure: (upstream) => ({
      ...plainConfiguration(upstream.baseUrl('m')),
      rate_limits: { key: { requests, window: `${windowMs}ms` } },
    }),
    hasProxies: false,
    ...(!hasRedis && { env: { REDIS_URL: '' } }),
    ...(root !== undefined && { root }),
  })
  try {
    // Without Redis, a node has the whole limit until it knows other nodes.
    await untilAcquainted(cluster.fleet.nodes)
    cluster.upstream.script('m', { kind: 'whole' })
    const statuses: number[] = []
    const startMs = performance.now()
    const endMs = startMs + windows * windowMs
    const client = async (url: string): Promise<void> => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      while (performance.now() < endMs) {
        const { status } = await call(url, ask('m'), { key: 'ann', agent })
        statuses.push(status)
        if (status !== 200) await sleep(RETRY_DELAY_MS)
      }
      agent.destroy()
    }
    const { urls } = cluster.fleet
    await Promise.all([
      meanwhile?.(cluster),
      ...clients.flatMap((count, node) => Array.from({ length: count }, () => client(urls[node] ?? ''))),
    ])
    const pages = await Promise.all(urls.map((url) => metricsOf(url)))
    const alone = pages.reduce((sum, page) => sum + page.sum('sluice_limits_alone_total'), 0)
    await cluster.fleet.stop()
    const calls = await admissions(cluster)
    const firstMs = calls[0]?.askedMs ?? 0
    const byWindow = Array.from(
      { length: windows },
      (_, index) =>
        calls.filter(({ askedMs }) => Math.floor((askedMs - firstMs) / windowMs) === index).length,
    )
    return {
      fullest: maxWithin(calls, windowMs) / requests,
      mean: byWindow.reduce((sum, count) => sum + count, 0) / (requests * windows),
      admitted: calls.length,
      refused: statuses.filter((status) => status === 429).length,
      alone,
      byWindow,
      fillMs: (calls[requests - 1]?.askedMs ?? Number.POSITIVE_INFINITY) - firstMs,
    }
  } finally {
    await cluster.clear()
  }
}

/** Admitted calls by the clock of their node, in order: from their arrival to the end of their response. */
async function admissions({ postgres }: Cluster): Promise<AdmittedCall[]> {
  const rows = await postgres.sql<{ asked: number; ended: number }>(
    'select ended_ms - duration_ms as asked, ended_ms as ended from usage_log order by asked',
  )
  return rows.map(({ asked, ended }) => ({ askedMs: asked, admittedMs: ended }))
}
