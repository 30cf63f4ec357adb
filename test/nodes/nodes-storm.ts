import { setTimeout as sleep } from 'node:timers/promises'
import { auditBank, type BankAudit } from '../fixtures/bank.ts'
import { type Cluster, startCluster } from '../fixtures/cluster.ts'
import { randomFrom } from '../fixtures/random.ts'
import { type ObservedCall, startTraffic } from '../fixtures/traffic.ts'
import { type AccountSet, FIVE_ACCOUNTS } from './accounts.ts'
import { excessLeases, watchLeases } from './excess-leases.ts'
import { type FaultInjection, restartUntilUp } from './fault-injection.ts'

/** Options of a storm over several nodes. */
export interface NodesStormPlan {
  readonly seed: number
  readonly seconds: number
  readonly clientsEach: number
  readonly faults: readonly FaultInjection[]
  /** The accounts; by default five, most of them with ample quota. */
  readonly accounts?: AccountSet
  /** The program's folder, if it is not the repository's. */
  readonly root?: string
}

/** The result of a storm. */
export interface NodesStormReport extends BankAudit {
  readonly calls: number
  readonly complete: number
  readonly partial: number
  /** Refusals, by error code. */
  readonly refused: Readonly<Record<string, number>>
  readonly unanswered: number
}

const NODES = 3

/**
 * Clients call three nodes in every way during the faults. Then everything is started again, the nodes are
 * stopped, and PostgreSQL's balances are compared with the clients' and the upstream's records.
 */
export async function nodesStorm(plan: NodesStormPlan): Promise<NodesStormReport> {
  const { seed, seconds, clientsEach, faults, accounts = FIVE_ACCOUNTS, root } = plan
  const random = randomFrom(seed)
  const cluster = await startCluster({
    nodes: NODES,
    configure: accounts.configure,
    ...(root === undefined ? {} : { root }),
  })
  try {
    await watchLeases(cluster.postgres)
    const seen: ObservedCall[] = []
    const { urls, nodes } = cluster.fleet
    const endMs = performance.now() + seconds * 1000
    const isOver = (): boolean => performance.now() >= endMs
    const traffic = startTraffic({ urls, clientsEach, keys: accounts.keys, random, observations: seen })
    await Promise.all([sleep(seconds * 1000), ...faults.map((one) => one(cluster, random, isOver))])
    await Promise.all(nodes.map(restartUntilUp))
    await traffic.stop()
    const codes = await cluster.fleet.stop()
    const audit = await auditBank(cluster, seen, accounts.granted)
    const broken = [
      ...audit.broken,
      ...(await excessLeases(cluster.postgres)),
      ...codes.flatMap((code, node) =>
        code === 0 ? [] : [`node ${node} stopped with ${code}: ${tail(cluster, node)}`],
      ),
    ]
    return { ...audit, broken, ...summary(seen) }
  } finally {
    await cluster.clear()
  }
}

function summary(seen: readonly ObservedCall[]): Omit<NodesStormReport, keyof BankAudit> {
  const refused: Record<string, number> = {}
  for (const { status, code } of seen) {
    const name = `${status} ${String(code)}`
    if (status >= 400) refused[name] = (refused[name] ?? 0) + 1
  }
  return {
    calls: seen.length,
    complete: seen.filter(({ status, complete }) => status === 200 && complete).length,
    partial: seen.filter(({ sawContent, complete }) => sawContent && !complete).length,
    unanswered: seen.filter(({ status }) => status === 0).length,
    refused,
  }
}

function tail({ fleet }: Cluster, node: number): string {
  return fleet.node(node).logs().slice(-500)
}
