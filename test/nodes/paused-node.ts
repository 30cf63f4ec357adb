import { setTimeout as sleep } from 'node:timers/promises'
import { auditBank } from '../fixtures/bank.ts'
import { FIVE_ACCOUNTS } from './accounts.ts'
import { callThreeNodes, CLIENTS, MAX_COST } from './called-nodes.ts'

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

/** Calls three nodes; suspends one of them, and resumes it long after its leases have ended. */
export async function pauseBeyondLease(seed: number): Promise<PausedReport> {
  const { cluster, traffic, seen } = await callThreeNodes(seed)
  const { fleet, postgres } = cluster
  const borrowedBy = async (node: string): Promise<number> => {
    const [row] = await postgres.sql<{ sum: number | null }>(
      `select sum(amount - held) as sum from leases where node = '${node}'`,
    )
    return row?.sum ?? 0
  }
  /** The node whose last report is the oldest. */
  const silentNode = async (): Promise<string> => {
    const [row] = await postgres.sql<{ node: string }>('select node from nodes order by expires limit 1')
    return row?.node ?? ''
  }
  try {
    await sleep(3_000)
    const paused = fleet.node(0)
    paused.pause()
    // Waits until reports that were already sent have arrived.
    await sleep(1_000)
    const silent = await silentNode()
    const borrowed = await borrowedBy(silent)
    await sleep(LEASE_MS + LOOKED_AFTER_MS + 2_000)
    const kept = await borrowedBy(silent)
    const resumedMs = performance.now()
    paused.resume()
    await sleep(5_000)
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
