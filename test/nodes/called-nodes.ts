import { layGround, type Ground } from '../equipment/ground.ts'
import { randomFrom } from '../equipment/random.ts'
import { type Seen, startTraffic, type Traffic } from '../equipment/traffic.ts'
import { FIVE_ACCOUNTS } from './accounts.ts'

/** Clients of each node. */
export const CLIENTS = 8
/** Maximum cost of a call: sixty tokens of output, five of prompt. */
export const MOST_COST = 245

/** Three nodes under continuous calls. */
export interface CalledNodes {
  readonly ground: Ground
  readonly traffic: Traffic
  /** Clients' records, which grow. */
  readonly seen: readonly Seen[]
}

/** Starts three nodes on five accounts, and clients that call them. */
export async function callThreeNodes(seed: number): Promise<CalledNodes> {
  const random = randomFrom(seed)
  const ground = await layGround({ nodes: 3, configure: FIVE_ACCOUNTS.configure })
  const seen: Seen[] = []
  const traffic = startTraffic({
    urls: ground.fleet.urls,
    clientsEach: CLIENTS,
    keys: FIVE_ACCOUNTS.keys,
    random,
    sightings: seen,
  })
  return { ground, traffic, seen }
}
