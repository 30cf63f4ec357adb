import { setTimeout as sleep } from 'node:timers/promises'
import { auditBank, type BankAudit } from '../equipment/bank.ts'
import { type Ground, layGround } from '../equipment/ground.ts'
import { randomFrom } from '../equipment/random.ts'
import { type Seen, startTraffic } from '../equipment/traffic.ts'
import { type Ensemble, FIVE_ACCOUNTS } from './accounts.ts'
import { lentTooMuch, watchLending } from './lent-too-much.ts'
import { type Mischief, revive } from './mischief.ts'

/** Options of a storm over several nodes. */
export interface NodesStormPlan {
  readonly seed: number
  readonly seconds: number
  readonly clientsEach: number
  readonly mischief: readonly Mischief[]
  /** Accounts; by default five, most of them with ample quota. */
  readonly accounts?: Ensemble
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
 * Clients call three nodes in every manner during the faults; then everything is started again, the nodes are
 * stopped, and PostgreSQL's balances are compared with the clients' and the upstream's records.
 */
export async function nodesStorm(plan: NodesStormPlan): Promise<NodesStormReport> {
  const { seed, seconds, clientsEach, mischief, accounts = FIVE_ACCOUNTS, root } = plan
  const random = randomFrom(seed)
  const ground = await layGround({
    nodes: NODES,
    configure: accounts.configure,
    ...(root === undefined ? {} : { root }),
  })
  try {
    await watchLending(ground.postgres)
    const seen: Seen[] = []
    const { urls, nodes } = ground.fleet
    const endMs = performance.now() + seconds * 1000
    const isOver = (): boolean => performance.now() >= endMs
    const traffic = startTraffic({ urls, clientsEach, keys: accounts.keys, random, sightings: seen })
    await Promise.all([sleep(seconds * 1000), ...mischief.map((one) => one(ground, random, isOver))])
    await Promise.all(nodes.map(revive))
    await traffic.stop()
    const codes = await ground.fleet.stop()
    const audit = await auditBank(ground, seen, accounts.granted)
    const broken = [
      ...audit.broken,
      ...(await lentTooMuch(ground.postgres)),
      ...codes.flatMap((code, node) =>
        code === 0 ? [] : [`node ${node} stopped with ${code}: ${tail(ground, node)}`],
      ),
    ]
    return { ...audit, broken, ...summary(seen) }
  } finally {
    await ground.clear()
  }
}

function summary(seen: readonly Seen[]): Omit<NodesStormReport, keyof BankAudit> {
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

function tail({ fleet }: Ground, node: number): string {
  return fleet.node(node).logs().slice(-500)
}
