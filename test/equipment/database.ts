import { closeSync, openSync, readdirSync, readSync } from 'node:fs'
import { join } from 'node:path'
import type { BudgetRow } from './budget-audit.ts'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { SUM_KINDS } from '../../src/store/sum-kinds.ts'

/** The balance columns of a token's row. */
export interface TokenBalance {
  readonly id: number
  readonly user_id: number
  readonly name: string
  readonly status: number
  readonly remain_quota: number
  readonly used_quota: number
  readonly accessed_time: number
}

/** The balance columns of a user's row. */
export interface UserBalance {
  readonly id: number
  readonly username: string
  readonly quota: number
  readonly used_quota: number
  readonly request_count: number
}

/** A row of the table of users. */
export interface UserRow extends UserBalance {
  readonly password_hash: string | null
}

/** A row of the usage log. */
export interface UsageRow {
  readonly id: string
  readonly user_id: number
  readonly token_id: number
  readonly model: string
  readonly channel: string
  readonly input_tokens: number
  readonly cache_read_tokens: number
  readonly output_tokens: number
  readonly search_units: number
  readonly quota: number
  readonly reason: string
  readonly stream: number
  readonly first_byte_ms: number | null
  readonly kind: string
  readonly group_name: string
  readonly ended_ms: number
  readonly duration_ms: number
}

/** A console session. */
export interface SessionRow {
  readonly id_hash: string
  readonly user_id: number
  readonly created_time: number
  readonly expires_time: number
}

/** A gateway's SQLite file, read while the gateway runs. Every read opens the file again. */
export interface GatewayDatabase {
  tokens(): TokenBalance[]
  users(): UserRow[]
  usage(): UsageRow[]
  sessions(): SessionRow[]
  budgets(): BudgetRow[]
  openHolds(): { readonly id: string; readonly amount: number; readonly token_id: number }[]
  /** The sum of the charges in each table of sums, including calls that are not added yet. */
  seriesQuota(): { readonly table: string; readonly quota: number }[]
  token(name: string): TokenBalance
  user(username: string): UserRow
  usageOf(requestId: string): UsageRow | undefined
  /** Writes states that no interface can create; only while no gateway runs. */
  write(sql: string, ...values: SQLInputValue[]): void
}

const UNSUMMED = `(select coalesce(sum(json_extract(value, '$[1][2]')), 0) from unsummed_calls, json_each(sums))`

/** The database of the gateway that runs or ran on this data directory. */
export function databaseOf(dataDir: string): GatewayDatabase {
  const rows = <Row>(sql: string): Row[] => {
    const database = new DatabaseSync(sqliteFileIn(dataDir), { readOnly: true, timeout: 5000 })
    try {
      return database.prepare(sql).all() as unknown as Row[]
    } finally {
      database.close()
    }
  }
  const one = <Row>(found: Row | undefined, what: string): Row => {
    if (found === undefined) throw new Error(`the database has no ${what}`)
    return found
  }
  const tokens = (): TokenBalance[] => rows('select * from tokens order by id')
  const users = (): UserRow[] => rows('select * from users order by id')
  const usage = (): UsageRow[] => rows('select * from usage_log order by ended_ms')
  return {
    tokens,
    users,
    usage,
    budgets: () => rows('select * from budget_periods'),
    sessions: () => rows('select * from sessions'),
    seriesQuota: () =>
      rows(
        SUM_KINDS.map(
          ({ kind, name }) =>
            `select '${name}' as "table", coalesce(sum(quota), 0) + ${UNSUMMED} as quota from usage_sums where kind = ${kind}`,
        ).join(' union all '),
      ),
    openHolds: () => rows('select id, amount, token_id from holds'),
    token: (name) =>
      one(
        tokens().find((token) => token.name === name),
        `token ${name}`,
      ),
    user: (username) =>
      one(
        users().find((user) => user.username === username),
        `user ${username}`,
      ),
    usageOf: (requestId) => usage().find((row) => row.id === requestId),
    write(sql, ...values) {
      const database = new DatabaseSync(sqliteFileIn(dataDir), { timeout: 5000 })
      try {
        const { changes } = database.prepare(sql).run(...values)
        if (Number(changes) === 0) throw new Error(`nothing was changed by: ${sql}`)
      } finally {
        database.close()
      }
    },
  }
}

const MAGIC = 'SQLite format 3\0'

function sqliteFileIn(dataDir: string): string {
  for (const name of readdirSync(dataDir)) {
    if (/-(?:wal|shm|journal)$/.test(name)) continue
    const path = join(dataDir, name)
    if (startsWithMagic(path)) return path
  }
  throw new Error(`there is no SQLite file in ${dataDir}`)
}

function startsWithMagic(path: string): boolean {
  const start = Buffer.alloc(MAGIC.length)
  let file: number
  try {
    file = openSync(path, 'r')
  } catch {
    // A socket or a lock is not a database.
    return false
  }
  try {
    return readSync(file, start, 0, start.length, 0) === start.length && start.toString('latin1') === MAGIC
  } catch {
    return false
  } finally {
    closeSync(file)
  }
}
