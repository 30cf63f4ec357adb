import { SUM_KINDS } from '../../src/store/sum-kinds.ts'
import { auditBooks, type Books, type GrantedQuotas } from './auditor.ts'
import { auditBudgets, type BudgetRow, type BudgetUsage } from './budget-audit.ts'
import { databaseOf, type TokenBalance, type UsageRow, type UserBalance } from './database.ts'
import { auditDeliveries, type Deliveries } from './deliveries.ts'
import type { Cluster } from './cluster.ts'
import { type ObservedCall, sentBy } from './traffic.ts'

/** A node's lease on an account. */
export interface LeaseRow {
  readonly account: string
  readonly node: string
  readonly amount: number
}

/** PostgreSQL's balances and leases, and the records of each node. */
export interface BankBooks extends Books {
  readonly leases: readonly LeaseRow[]
  /** The total of each kind of sums. */
  readonly sums: readonly { readonly name: string; readonly quota: number; readonly failed: number }[]
  /** Sum of the amounts that accounts record as leased. */
  readonly leased: number
}

/** Reads the books from the databases, without the gateways. */
export async function booksOfBank({ postgres, fleet }: Cluster): Promise<BankBooks> {
  const sum = async (sql: string): Promise<number> => {
    const [row] = await postgres.sql<{ sum: number | null }>(sql)
    return row?.sum ?? 0
  }
  return {
    tokens: await postgres.sql<TokenBalance>('select * from tokens order by id'),
    users: await postgres.sql<UserBalance>('select * from users order by id'),
    usage: await postgres.sql<UsageRow>('select * from usage_log order by ended_ms'),
    leases: await postgres.sql<LeaseRow>('select * from leases order by account, node'),
    sums: await Promise.all(
      SUM_KINDS.map(async ({ kind, name }) => ({
        name,
        quota: await sum(`select sum(quota) from usage_sums where kind = ${kind}`),
        failed: await sum(`select sum(failed) from usage_sums where kind = ${kind}`),
      })),
    ),
    leased: await sum('select (select sum(leased) from users) + (select sum(leased) from tokens) as sum'),
    openHolds: fleet.nodes.flatMap(({ dataDir }) => databaseOf(dataDir).openHolds()),
  }
}

/** The result of auditing the bank. */
export interface BankAudit extends Omit<Deliveries, 'broken'> {
  /** Broken promises; empty if every promise held. */
  readonly broken: readonly string[]
}

const isFailed = (reason: string): boolean => ['failed', 'cut', 'crash', 'lost-node'].includes(reason)

/** Audits the bank after all nodes have stopped. In addition to the other promises, no lease may be left. */
export async function auditBank(
  cluster: Cluster,
  seen: readonly ObservedCall[],
  granted: GrantedQuotas,
): Promise<BankAudit> {
  const books = await booksOfBank(cluster)
  const { broken: unpaid, ...deliveries } = auditDeliveries(books, seen, sentBy(cluster.upstream))
  const budgets = await cluster.postgres.sql<BudgetRow>('select * from budget_periods')
  const usage = await cluster.postgres.sql<BudgetUsage>('select * from usage_log')
  const logged = books.usage.reduce((sum, { quota }) => sum + quota, 0)
  const broken = [
    ...auditBooks(books, seen, granted),
    ...unpaid,
    ...(granted.hasBudgets ? auditBudgets(budgets, usage, granted.overshoot) : []),
    ...books.leases.map(({ account, node, amount }) => `node ${node} still has ${amount} of ${account}`),
    ...books.users
      .filter(({ username, quota }) => granted.users.has(username) && quota < -(granted.overshoot ?? 0))
      .map(({ username, quota }) => `user ${username} is overdrawn by ${-quota}`),
  ]
  if (books.leased !== 0) broken.push(`accounts believe that ${books.leased} is lent`)
  const failed = books.usage.filter(({ reason }) => isFailed(reason)).length
  for (const sums of books.sums) {
    if (sums.quota !== logged) broken.push(`${sums.name} comes to ${sums.quota}, the log to ${logged}`)
    if (sums.failed !== failed) broken.push(`${sums.name} has ${sums.failed} failed calls, the log ${failed}`)
  }
  return { ...deliveries, broken }
}
