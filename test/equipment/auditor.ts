import { databaseOf, type TokenBalance, type UsageRow, type UserBalance } from './database.ts'

/** A client's record of one request. */
export interface Observation {
  /** The client's own id of the request, which the upstream receives too. */
  readonly call: string
  /** The `x-request-id` of the response; undefined if no response headers arrived. */
  readonly id: string | undefined
  readonly status: number
  /** Whether any of the response's content reached the client. */
  readonly sawContent: boolean
  /** Whether the response reached the client to its end. */
  readonly complete: boolean
  /** The charge in quota units if the response is complete, computed by the client from the prices. */
  readonly quota: number
  /** The cost in quota units of the prompt and of the part of the output that the client saw. */
  readonly seenCost: number
}

/** The quota given to each account, by name. */
export interface GrantedQuotas {
  readonly tokens: ReadonlyMap<string, number>
  readonly users: ReadonlyMap<string, number>
  /** How far each balance may go below zero; 0 by default. */
  readonly overshoot?: number
  /** Whether calls were charged to budgets, too. */
  readonly hasBudgets?: boolean
}

/** Balances, usage rows and open holds of a database. */
export interface Books {
  readonly tokens: readonly TokenBalance[]
  readonly users: readonly UserBalance[]
  readonly usage: readonly Pick<UsageRow, 'id' | 'user_id' | 'token_id' | 'quota' | 'reason'>[]
  readonly openHolds: readonly { readonly id: string }[]
}

/** Reads them from a gateway's embedded database. */
export function booksIn(dataDir: string): Books {
  const database = databaseOf(dataDir)
  return {
    tokens: database.tokens(),
    users: database.users(),
    usage: database.usage(),
    openHolds: database.openHolds(),
  }
}

/** Audits a gateway with its embedded database, after a crash and a restart. */
export function audit(
  dataDir: string,
  observations: readonly Observation[],
  granted: GrantedQuotas,
): string[] {
  const books = booksIn(dataDir)
  const logged = books.usage.reduce((sum, { quota }) => sum + quota, 0)
  const series = databaseOf(dataDir)
    .seriesQuota()
    .filter(({ quota }) => quota !== logged)
    .map(({ table, quota }) => `${table} comes to ${quota}, the log to ${logged}`)
  return [...auditBooks(books, observations, granted), ...series]
}

/**
 * Compares clients' records with the database. Returns a sentence for each broken promise. The auditor knows
 * the promises and the tables, and shares no code with the gateway.
 */
export function auditBooks(
  books: Books,
  observations: readonly Observation[],
  granted: GrantedQuotas,
): string[] {
  const { overshoot = 0 } = granted
  const broken: string[] = []
  const rows = new Map<string, { quota: number; reason: string }>()
  const sums = { tokens: new Map<number, number>(), users: new Map<number, number>() }
  for (const row of books.usage) {
    if (rows.has(row.id)) broken.push(`${row.id} has two usage rows`)
    rows.set(row.id, row)
    sums.tokens.set(row.token_id, (sums.tokens.get(row.token_id) ?? 0) + row.quota)
    sums.users.set(row.user_id, (sums.users.get(row.user_id) ?? 0) + row.quota)
    if (row.quota < 0) broken.push(`${row.id} was charged ${row.quota}`)
  }

  const seen = new Set<string>()
  for (const { id, status, sawContent, complete, quota } of observations) {
    if (id === undefined) {
      if (sawContent) broken.push('content without a request id')
      continue
    }
    if (seen.has(id)) broken.push(`${id} answered two requests`)
    seen.add(id)
    const row = rows.get(id)
    if (complete && status === 200) {
      if (!row) broken.push(`${id} was seen complete and never charged`)
      else if (row.quota !== quota)
        broken.push(`${id} was seen complete and charged ${row.quota} (${row.reason}), not ${quota}`)
    } else if (sawContent && status === 200) {
      if (!row) broken.push(`${id} delivered content without a trace`)
      else if (row.quota < 1) broken.push(`${id} delivered content for nothing (${row.reason})`)
      else if (row.quota > quota)
        broken.push(`${id} was seen in part and charged ${row.quota} (${row.reason}), more than ${quota}`)
    } else if (status !== 0 && status !== 200 && row && row.quota > 0) {
      broken.push(`${id} was refused with ${status} and charged ${row.quota}`)
    }
  }

  for (const token of books.tokens) {
    const sum = sums.tokens.get(token.id) ?? 0
    if (token.used_quota !== sum)
      broken.push(`token ${token.name} used ${token.used_quota}, its rows say ${sum}`)
    const given = granted.tokens.get(token.name)
    if (given === undefined) continue
    if (given !== token.remain_quota + token.used_quota)
      broken.push(
        `token ${token.name} was given ${given}, has ${token.remain_quota} and used ${token.used_quota}`,
      )
    if (token.remain_quota < -overshoot)
      broken.push(`token ${token.name} is overdrawn by ${-token.remain_quota}`)
  }
  for (const user of books.users) {
    const sum = sums.users.get(user.id) ?? 0
    if (user.used_quota !== sum)
      broken.push(`user ${user.username} used ${user.used_quota}, the rows say ${sum}`)
    const given = granted.users.get(user.username)
    if (given !== undefined && given !== user.quota + user.used_quota)
      broken.push(`user ${user.username} was given ${given}, has ${user.quota} and used ${user.used_quota}`)
  }
  for (const hold of books.openHolds) broken.push(`hold ${hold.id} is still open`)
  return broken
}
