import { sql } from 'kysely'
import { type AccountName, accountsOfCall } from '../bank.ts'
import type { Db } from './operation.ts'

/** The sum of the open holds on one account, in quota units. */
export interface HeldSum {
  readonly account: AccountName
  readonly held: number
}

interface Accounts {
  readonly accounts: readonly AccountName[]
}

/**
 * Reads the sums of the stored open holds on these accounts. Accounts without open holds are left out. Here and below,
 * holds are added as floating point, which is exact up to 2^53: no driver reads a greater integer.
 */
export async function heldOnAccounts(db: Db, { accounts }: Accounts): Promise<HeldSum[]> {
  if (accounts.length === 0) return []
  const { rows } = await sql<{ token_id: number; user_id: number; budgets: string; held: number }>`
    select token_id, user_id, budgets, sum(cast(amount as double precision)) as held from holds group by token_id, user_id, budgets`.execute(
    db,
  )
  const wanted = new Set<AccountName>(accounts)
  const sums = new Map<AccountName, number>()
  for (const row of rows)
    for (const account of accountsOfCall(row))
      if (wanted.has(account)) sums.set(account, (sums.get(account) ?? 0) + row.held)
  return [...sums].map(([account, held]) => ({ account, held }))
}

/**
 * Reads the sums of open holds on these accounts from a database that several nodes share: by the latest
 * reports of all nodes except one.
 */
export async function heldByNodes(
  db: Db,
  { accounts, except }: Accounts & { readonly except: string },
): Promise<HeldSum[]> {
  if (accounts.length === 0) return []
  const { rows } = await sql<HeldSum>`
    select account, sum(held::double precision) as held from leases
    where held > 0 and node <> ${except} and account in (${sql.join(accounts)}) group by account`.execute(db)
  return rows
}
