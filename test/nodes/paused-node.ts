import { setTimeout as sleep } from 'node:timers/promises'
import { auditBank } from '../fixtures/bank.ts'
import { FIVE_ACCOUNTS } from './accounts.ts'
import { callThreeNodes, CLIENTS, MAX_COST, namesOfNodes, silentNode, untilAnswered } from './called-nodes.ts'

/** The result of suspending a node for longer than its leases last. */
export interface PausedReport {
  readonly broken: readonly string[]
  /** The node's leases when it was suspended, and the part that it still had afterwards. */
  readonly borrowed: number
  readonly kept: number
  /** The number of calls that the node answered after it resumed. */
  readonly answeredAfter: number
}

const LEASE_MS = 60_000
/** Milliseconds between two checks of the nodes' leases against the bank. */
const LOOKED_AFTER_MS = 10_000
/** Calls that the node answers before it is suspended, and again after it resumes. */
const MANY = 100

/** Calls three nodes; suspends one of them, and resumes it long after its leases have ended. */
export async function pauseBeyondLease(seed: number): Promise<PausedReport> {
  const called = await callThreeNodes(seed)
  const { cluster, traffic, seen } = called
  const { fleet, postgres } = cluster
  const borrowedBy = async (node: string): Promise<number> => {
    const [row] = await postgres.sql<{ sum: number | null }>(
      `select sum(amount - held) as sum from leases where node = '${node}'`,
    )
    return row?.sum ?? 0
  }
  try {
    const paused = fleet.node(0)
    await untilAnswered(called, paused.url, MANY)
    const names = await namesOfNodes(cluster)
    paused.pause()
    const silent = await silentNode(cluster, names)
    const borrowed = await borrowedBy(silent)
    await sleep(LEASE_MS + LOOKED_AFTER_MS + 2_000)
    const kept = await borrowedBy(silent)
    const resumedMs = performance.now()
    paused.resume()
    await untilAnswered(called, paused.url, MANY, resumedMs)
    await traffic.stop()
    await fleet.stop()
    const { broken } = await auditBank(cluster, seen, {
      ...FIVE_ACCOUNTS.granted,
      overshoot: CLIENTS * MAX_COST,
    })
    const after = seen.filter(
      ({ url, sentMs, status }) => url === paused.url && sentMs > resumedMs && status === 200,
    )
    return { broken, borrowed, kept, answeredAfter: after.length }
  } finally {
    fleet.node(0).resume()
    await cluster.clear()
  }
}
