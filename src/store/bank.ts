import { type BudgetName, budgetsIn } from '../domain/budget.ts'
import type { Token } from '../domain/records/token.ts'
import type { User } from '../domain/records/user.ts'

/** Name of an account in the bank: a user's, a token's, or that of a budget in one period. */
export type AccountName = `u:${number}` | `t:${number}` | BudgetName

/** Accounts that a call moves: those of its token, its user and its budgets (`budgetList`). */
export function accountsOf(call: {
  readonly token_id: number
  readonly user_id: number
  readonly budgets: string
}): readonly AccountName[] {
  return [`t:${call.token_id}`, `u:${call.user_id}`, ...budgetsIn(call.budgets)]
}

/** Loan from the account of a budget. Amounts are quota units. */
export interface BudgetRequest {
  readonly account: BudgetName
  /** The budget as the node knows it; 0 if unknown. For users and tokens the bank's own value applies. */
  readonly amount: number
  readonly need: number
  readonly max: number
}

/** Place of a call in the bank's queue of calls that wait for quota; `docs/ledger.md: Waiting for other calls`. */
export interface LoanPlace {
  /** Names the call among those of its process. */
  readonly ticket: number
  /** Its order of arrival, once the bank has answered. */
  readonly order: number | undefined
  /** What the call holds once it is admitted, in quota units. */
  readonly amount: number
  /** Whether open holds prevent it, so that it does not pass calls that came first. */
  readonly waits: boolean
}

/** Request of a node for a loan, for calls of one token. Amounts are quota units. */
export interface LoanRequest {
  /** Id of the token, or the HMAC of its key. */
  readonly token: number | { readonly keyHash: string }
  /** Amounts required in addition to what the node has; 0 for none. */
  readonly need: { readonly token: number; readonly user: number }
  /** Maximum useful amounts; a higher `need` takes precedence. */
  readonly max: { readonly token: number; readonly user: number }
  /** Budgets that the calls are charged to. */
  readonly budgets?: readonly BudgetRequest[]
  /** The place of a call; without one, the request passes all that wait. A request that is refused gets a place. */
  readonly place?: LoanPlace | undefined
}

/** Response of the bank to a request. */
export interface LoanResponse {
  /** True = all needs were lent. False if too little is free, or the token or the user may not be used. */
  readonly granted: boolean
  readonly token: Token
  readonly user: User
  readonly tokenState: AccountState
  readonly userState: AccountState
  readonly budgetStates: readonly AccountState[]
  /** Order of a call that waits; absent if the request has no place or was granted. */
  readonly order?: number | undefined
  /**
   * Whether a request that was refused would be granted if all processes returned what they borrowed and, as far
   * as the bank knows, do not hold.
   */
  readonly isReturnable?: boolean | undefined
}

/** State of an account in the bank, as one node sees it. Amounts are quota units. */
export interface AccountState {
  readonly account: AccountName
  /** Rises whenever the leases of the account are recalled. */
  readonly epoch: number
  /** Balance of the account, including leased amounts. */
  readonly remain: number
  /** Part of the balance that is not lent. */
  readonly free: number
  /** Amount lent to the node that it has not reported as spent. */
  readonly amount: number
  /** Charges of the node that were counted since the last state, if the node does not report them itself. */
  readonly counted?: number
}

/** Report of a node's open holds on an account, in quota units. */
export interface HoldReport {
  readonly account: AccountName
  /** Sum of the open holds. */
  readonly held: number
  /** Expected charge of these holds, to be booked if the node is lost; of tokens and budgets only. */
  readonly estimate: number
}

/** Answer of the bank to a report. */
export interface BankStatement {
  /** States of the accounts in the report. */
  readonly states: readonly AccountState[]
  /** Accounts whose rows another session has locked; no call that charges one of them was booked. */
  readonly locked: readonly AccountName[]
}

/**
 * Bank as one node uses it; `docs/ledger.md: Many nodes`. Methods reject with `StoreUnavailable` if the
 * database is out of reach. Whether a rejected request took effect is unknown until the next report.
 */
export interface Bank {
  /**
   * Requests loans. Resolves to one result per request, in order; undefined for an unknown token, `locked` if
   * another session has locked the row of an account. `left` are tickets of calls that do not wait any more.
   */
  acquire(
    requests: readonly LoanRequest[],
    left?: readonly number[],
  ): Promise<readonly (LoanResponse | 'locked' | undefined)[]>
  /**
   * Reports settled calls (JSON, as in the outbox) and open holds. A call counts once, even if it is reported
   * repeatedly. Renews the node's leases for another minute.
   */
  apply(calls: readonly string[], held: readonly HoldReport[]): Promise<BankStatement>
  /** Resolves to the states of all accounts that the node borrows from; recovers leases of lost nodes. */
  compare(): Promise<readonly AccountState[]>
  /** Returns the leases of these accounts, except the amounts to keep, and except locked accounts. */
  release(
    remainders: readonly { readonly account: AccountName; readonly keep: number }[],
  ): Promise<readonly AccountState[]>
  /** Returns all leases, held or not, except those of locked accounts, and removes the node. */
  leave(): Promise<void>
}
