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
