import { onTestFinished } from 'vitest'
import type { AccountName, Bank } from '../../src/store/bank.ts'
import { postgresBank } from '../../src/store/postgres/bank.ts'
import { BankConnection } from '../../src/store/postgres/bank-connection.ts'
import { serializeForOutbox } from '../../src/store/usage-row.ts'
import type { RowStore } from '../../src/store/store.ts'
import { type Engine, ENGINES, PATIENCE_MS, rowsWithAccount, type TestDatabase } from '../stores/engines.ts'
import { settledCall } from '../stores/rows.ts'

/** PostgreSQL, if a server is available. */
export const BANKS: readonly Engine[] = ENGINES.filter(({ name }) => name === 'PostgreSQL')

/**
 * A bank with one user (u:1, 1,000,000 quota units) and one token of that user (t:1, 500,000; its key is
 * `k1`).
 */
export interface BankFixture {
  readonly store: RowStore
  readonly database: TestDatabase
  /** The connection of the call path. */
  readonly connection: BankConnection
  /** The bank as seen by the node with that name. */
  readonly node: (name: string) => Bank
  /** The rows of accounts and leases in the database. */
  readonly accounts: () => Promise<{
    readonly token: AccountState
    readonly user: AccountState
    readonly leases: readonly { account: string; node: string; amount: number; held: number }[]
  }>
  /** Moves the time of a node's last report into the past. */
  readonly setSilence: (node: string, seconds: number) => Promise<void>
}

/** The balance of one account. */
export interface AccountState {
  readonly remain: number
  readonly used: number
  readonly leased: number
  readonly epoch: number
}

/** Sets up a bank that is deleted after the test. */
export async function bankFixture(engine: Engine): Promise<BankFixture> {
  const { store, database } = await rowsWithAccount(engine)
  const connection = new BankConnection(database.place, { hasRole: true, timeoutMs: PATIENCE_MS })
  onTestFinished(() => connection.close())
  const { sql } = database
  return {
    store,
    database,
    connection,
    node: (name) => postgresBank(connection, name),
    async accounts() {
      const token = await sql(
        'select remain_quota as remain, used_quota as used, leased, epoch from tokens where id = 1',
      )
      const user = await sql(
        'select quota as remain, used_quota as used, leased, epoch from users where id = 1',
      )
      const leases = await sql('select account, node, amount, held from leases order by account, node')
      return { token: token[0] as never, user: user[0] as never, leases: leases as never }
    },
    async setSilence(node, seconds) {
      await sql(
        `update nodes set expires = now() - interval '${seconds - 60} seconds' where node = '${node}'`,
      )
    },
  }
}

/** A settled call of the fixture's token. */
export function report(id: string, quota: number): string {
  return serializeForOutbox(settledCall({ userId: 1, tokenId: 1 }, id, { quota }))
}

/** A request for exactly this amount on both accounts. */
export function exactly(amount: number, token: number | { readonly keyHash: string } = 1) {
  const both = { token: amount, user: amount }
  return { token, need: both, max: both }
}

/** The held amount on an account. */
export function held(account: AccountName, amount: number, estimate = 0) {
  return { account, held: amount, estimate }
}
