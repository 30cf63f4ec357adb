import { expect } from 'vitest'
import { startCluster, type Cluster } from '../fixtures/cluster.ts'
import { randomFrom } from '../fixtures/random.ts'
import { type ObservedCall, startTraffic, type Traffic } from '../fixtures/traffic.ts'
import { FIVE_ACCOUNTS } from './accounts.ts'

/** The number of clients of each node. */
export const CLIENTS = 8
/** Maximum cost of a call: sixty tokens of output, five of prompt. */
export const MAX_COST = 245

/** Three nodes under continuous calls. */
export interface CalledNodes {
  readonly cluster: Cluster
  readonly traffic: Traffic
  /** The clients' records; the array grows. */
  readonly seen: readonly ObservedCall[]
}

/** Starts three nodes on five accounts, and clients that call them. */
export async function callThreeNodes(seed: number): Promise<CalledNodes> {
  const random = randomFrom(seed)
  const cluster = await startCluster({ nodes: 3, configure: FIVE_ACCOUNTS.configure })
  const seen: ObservedCall[] = []
  const traffic = startTraffic({
    urls: cluster.fleet.urls,
    clientsEach: CLIENTS,
    keys: FIVE_ACCOUNTS.keys,
    random,
    observations: seen,
  })
  return { cluster, traffic, seen }
}

/** Resolves when a gateway has answered this number of calls that were sent after a moment, by `performance.now()`. */
export function untilAnswered(
  { seen }: CalledNodes,
  url: string,
  count: number,
  afterMs = Number.NEGATIVE_INFINITY,
): Promise<void> {
  const answered = (): number =>
    seen.filter((one) => one.url === url && one.sentMs > afterMs && one.status === 200).length
  return expect.poll(answered).toBeGreaterThanOrEqual(count)
}

/** The names of the nodes that the bank knows. */
export async function namesOfNodes({ postgres }: Cluster): Promise<readonly string[]> {
  return (await postgres.sql<{ node: string }>('select node from nodes')).map(({ node }) => node)
}

/** The one of these nodes that reports no more. */
export async function silentNode({ postgres }: Cluster, names: readonly string[]): Promise<string> {
  const reports = async (): Promise<ReadonlyMap<string, string>> => {
    const rows = await postgres.sql<{ node: string; expires: string }>(
      'select node, expires::text as expires from nodes',
    )
    return new Map(rows.map(({ node, expires }) => [node, expires]))
  }
  const silentNow = async (): Promise<string | undefined> => {
    const before = await reports()
    let silent: readonly string[] = []
    const count = async (): Promise<number> => {
      const now = await reports()
      silent = names.filter((name) => now.get(name) === before.get(name))
      return silent.length
    }
    await expect.poll(count).toBeLessThanOrEqual(1)
    return silent[0]
  }
  // Its last report may still arrive, so it has to be silent twice.
  for (let last = await silentNow(); ; ) {
    const next = await silentNow()
    if (next !== undefined && next === last) return next
    last = next
  }
}
