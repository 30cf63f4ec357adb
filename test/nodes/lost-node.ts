import { setTimeout as sleep } from 'node:timers/promises'
import { auditBank, booksOfBank } from '../fixtures/bank.ts'
import type { ObservedCall } from '../fixtures/traffic.ts'
import { FIVE_ACCOUNTS } from './accounts.ts'
import { callThreeNodes, CLIENTS, MAX_COST, namesOfNodes, silentNode, untilAnswered } from './called-nodes.ts'

/** The result of losing a node with its folder. */
export interface LostReport {
  /** The auditor's findings on all other nodes, and on the accounts. */
  readonly broken: readonly string[]
  /**
   * Calls that a client saw complete and that were never charged; and how long before the loss the earliest
   * one ended.
   */
  readonly lost: number
  readonly longestMs: number
  /** The estimated amount that was charged instead. */
  readonly estimated: number
}

/** Patience until lost nodes are settled, which the other nodes check every ten seconds. */
const SETTLED_MS = 60_000
/** Calls that the node answers before it is lost. */
const MANY = 100

/** Calls three nodes, kills one and deletes its folder; the bank settles its open calls. */
export async function loseNode(seed: number): Promise<LostReport> {
  const called = await callThreeNodes(seed)
  const { cluster, traffic, seen } = called
  const { fleet, postgres } = cluster
  try {
    await untilAnswered(called, fleet.node(0).url, MANY)
    const before = await namesOfNodes(cluster)
    const lostMs = performance.now()
    await fleet.node(0).killAndDelete()
    await fleet.node(0).restart()
    // The silent node is the lost one. Its last report is set back by sixteen minutes.
    const silent = await silentNode(cluster, before)
    await postgres.sql(`update nodes set expires = expires - interval '17 minutes' where node = '${silent}'`)
    const stillLent = `select 1 from leases where node = '${silent}'`
    for (const endMs = performance.now() + SETTLED_MS; (await postgres.sql(stillLent)).length > 0; ) {
      if (performance.now() > endMs) break
      await sleep(200)
    }
    await traffic.stop()
    await fleet.stop()
    const rows = new Map((await booksOfBank(cluster)).usage.map((row) => [row.id, row]))
    const isLost = ({ url, id, sentMs }: ObservedCall): boolean =>
      url === fleet.node(0).url && sentMs <= lostMs && !(id !== undefined && rows.has(id))
    const lost = seen.filter(
      (observation) => isLost(observation) && observation.complete && observation.status === 200,
    )
    const { broken } = await auditBank(
      cluster,
      seen.filter((observation) => !isLost(observation)),
      { ...FIVE_ACCOUNTS.granted, overshoot: CLIENTS * MAX_COST },
    )
    return {
      // The upstream's record contains the lost calls, too.
      broken: broken.filter((sentence) => !sentence.includes('the upstream sent')),
      lost: lost.length,
      longestMs: Math.max(0, ...lost.map(({ endedMs }) => lostMs - endedMs)),
      estimated: [...rows.values()].reduce(
        (sum, { reason, quota }) => (reason === 'lost-node' ? sum + quota : sum),
        0,
      ),
    }
  } finally {
    await cluster.clear()
  }
}
