import { setTimeout as delay } from 'node:timers/promises'
import type { AccountName, Bank, BankStatement, LoanResponse, LoanRequest, AccountState } from '../bank.ts'
import type { TokenRow } from '../../domain/records/token.ts'
import type { UserRow } from '../../domain/records/user.ts'
import { tokenFromRow, userFromRow } from '../account-rows.ts'
import type { BankConnection } from './bank-connection.ts'
import { isRetryableConflict } from './failure.ts'

/** Maximum number of attempts at a statement that conflicts with other transactions. */
const MAX_ATTEMPTS = 5
const RETRY_JITTER_MS = 5

/** Columns that the bank adds to the row of an account. */
interface BankColumns {
  readonly epoch: number
  readonly leased: number
}

interface LoanRow extends Partial<LockedRow<readonly AccountName[]>> {
  readonly granted: boolean
  readonly token: (TokenRow & BankColumns) | null
  readonly user: UserRow & BankColumns
  readonly token_amount: number
  readonly user_amount: number
  readonly budgets: readonly AccountState[]
  readonly place: number | null
  readonly returnable: boolean
}

/** Result that lists the accounts that another database session has locked. */
interface LockedRow<Locked> {
  readonly locked: Locked
}

/** The bank as it is used by the node with this name, over one connection. Runs one statement at a time. */
export function postgresBank(connection: BankConnection, node: string): Bank {
  /**
   * Accounts whose rows were locked when this statement was tried before. The bank does not wait for these
   * locks again.
   */
  const locked = new Set<AccountName>()
  const run = <Row>(call: string, values: readonly unknown[], name: string): Promise<Row[]> =>
    withRetries(async () => {
      const rows = await connection.query<{ said: Row }>(`select said from ${call} as said`, values, name)
      return rows.map(({ said }) => said)
    })
  return {
    async acquire(requests, left = []) {
      const wanted = JSON.stringify([...left.map((ticket) => ({ left: ticket })), ...requests.map(wantedOf)])
      const rows = await run<LoanRow | LockedRow<readonly AccountName[]>>(
        'bank_borrow($1, $2::jsonb, $3::text[])',
        [node, wanted, [...locked]],
        'borrow',
      )
      return rows.slice(left.length).map((row) => {
        for (const account of row.locked ?? []) locked.add(account)
        return 'token' in row ? loanOf(row) : 'locked'
      })
    },
    async apply(calls, held) {
      const values = [
        node,
        `[${calls.join(',')}]`,
        held.map(({ account }) => account),
        held.map((one) => one.held),
        held.map(({ estimate }) => estimate),
        [...locked],
      ]
      const rows = await run<AccountState | LockedRow<AccountName>>(
        'bank_report($1, $2::jsonb, $3::text[], $4::bigint[], $5::bigint[], $6::text[])',
        values,
        'report',
      )
      locked.clear()
      const states: AccountState[] = []
      for (const row of rows) {
        if ('locked' in row) locked.add(row.locked)
        else states.push(row)
      }
      return { states, locked: [...locked] } satisfies BankStatement
    },
    compare: () => run<AccountState>('bank_compare($1)', [node], 'compare'),
    release(remainders) {
      const values = [
        node,
        remainders.map(({ account }) => account),
        remainders.map(({ keep }) => keep),
        [...locked],
      ]
      return run<AccountState>('bank_return($1, $2::text[], $3::bigint[], $4::text[])', values, 'return')
    },
    async leave() {
      await run('bank_return($1, null, null, $2::text[])', [node, [...locked]], 'leave')
    },
  }
}

// Quota is at most 2^53, up to which JSON numbers are exact.
function wantedOf({ token, need, max, budgets = [], isLookUp, isUnderWay, place }: LoanRequest): object {
  return {
    ...(place && { ticket: place.ticket, place: place.order, amount: place.amount, waits: place.waits }),
    ...(isUnderWay && { under_way: true }),
    ...(isLookUp && { look_up: true }),
    ...(typeof token === 'number' ? { token } : { hash: token.keyHash }),
    token_need: need.token,
    token_most: max.token,
    user_need: need.user,
    user_most: max.user,
    budgets: budgets.map(({ max: most, ...budget }) => ({ ...budget, most })),
  }
}

function loanOf({
  granted,
  token,
  user,
  token_amount,
  user_amount,
  budgets,
  place,
  returnable,
}: LoanRow): LoanResponse | undefined {
  if (!token) return undefined
  return {
    granted,
    token: tokenFromRow(token),
    user: userFromRow(user),
    tokenState: accountStateOf(`t:${token.id}`, token, token.remain_quota, token_amount),
    userState: accountStateOf(`u:${user.id}`, user, user.quota, user_amount),
    budgetStates: budgets,
    order: place ?? undefined,
    isReturnable: returnable,
  }
}

function accountStateOf(
  account: AccountName,
  { epoch, leased, used_quota: used }: BankColumns & Pick<UserRow, 'used_quota'>,
  remain: number,
  amount: number,
): AccountState {
  return { account, epoch, remain, used, free: remain - leased, amount }
}

async function withRetries<Result>(work: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work()
    } catch (error) {
      if (attempt === MAX_ATTEMPTS || !isRetryableConflict(error)) throw error
      await delay(Math.random() * RETRY_JITTER_MS * attempt)
    }
  }
}
