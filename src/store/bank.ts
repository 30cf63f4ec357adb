import { type BudgetName, parseBudgetList } from '../domain/budget.ts'
import type { Token } from '../domain/records/token.ts'
import type { User } from '../domain/records/user.ts'

/**
 * Name of an account in the bank, the part of the database that lends quota to nodes: a user, a token, or a
 * budget in one period.
 */
export type AccountName = `u:${number}` | `t:${number}` | BudgetName

/**
 * The accounts that a call is charged to: the accounts of its token, of its user, and of its budgets
 * (`formatBudgetList`).
 */
export function accountsOfCall(call: {
  readonly token_id: number
  readonly user_id: number
  readonly budgets: string
}): readonly AccountName[] {
  return [`t:${call.token_id}`, `u:${call.user_id}`, ...parseBudgetList(call.budgets)]
}

/** Request for a loan from the account of a budget. Amounts are quota units. */
export interface BudgetRequest {
  readonly account: BudgetName
  /**
   * Amount of the budget as the node knows it; 0 if unknown. For budgets of users and tokens, the bank uses
   * its own value.
   */
  readonly amount: number
  readonly need: number
  readonly max: number
}

/**
 * Place of a call in the bank's queue of calls that wait for quota; `docs/ledger.md: Waiting for other
 * calls`.
 */
export interface LoanQueuePlace {
  /** Number that identifies the waiting call within its process. */
  readonly ticket: number
  /** Number by which the bank orders waiting calls; undefined until the bank has answered. */
  readonly order: number | undefined
  /** Quota units that are reserved for the call once it is admitted. */
  readonly amount: number
  /**
   * Whether the call waits because running calls have reserved the quota. It then does not overtake calls
   * that wait longer.
   */
  readonly waits: boolean
}

/** Request of a node for loans, to pay for calls of one token. Amounts are quota units. */
export interface LoanRequest {
  /** Id of the token, or the HMAC of its key. */
  readonly token: number | { readonly keyHash: string }
  /** Quota units that the node requires in addition to what it has borrowed already; 0 if it requires no more. */
  readonly need: { readonly token: number; readonly user: number }
  /**
   * Whether the node requests the state of a token and needs no quota. Where another session has locked a row, nothing
   * is lent, and the state is the last committed one.
   */
  readonly isLookUp?: boolean
  /** Maximum amounts that are useful to the node; a higher `need` takes precedence. */
  readonly max: { readonly token: number; readonly user: number }
  /** Budgets that the calls are charged to. */
  readonly budgets?: readonly BudgetRequest[]
  /** Whether the loan is for a running call, which continues even if its token or user may make no more calls. */
  readonly isUnderWay?: boolean
  /**
   * Place of the call in the queue. Without it, the request overtakes all calls that wait; if it is refused,
   * the call gets a place.
   */
  readonly place?: LoanQueuePlace | undefined
}

/** Response of the bank to a `LoanRequest`. */
export interface LoanResponse {
  /**
   * Whether all required amounts were lent. False if too little is free, or if the token or the user is
   * disabled.
   */
  readonly granted: boolean
  readonly token: Token
  readonly user: User
  readonly tokenState: AccountState
  readonly userState: AccountState
  readonly budgetStates: readonly AccountState[]
  /**
   * Number by which the bank orders a waiting call; absent if the request has no place in the queue or was
   * granted.
   */
  readonly order?: number | undefined
  /**
   * Whether the request was refused only because processes have borrowed more than their running calls need,
   * as far as the bank knows. It could be granted if they returned the rest.
   */
  readonly isReturnable?: boolean | undefined
}

/** State of an account in the bank, as one node sees it. Amounts are quota units. */
export interface AccountState {
  readonly account: AccountName
  /** Number that increases whenever the bank ends the leases of the account. */
  readonly epoch: number
  /** Balance of the account, including amounts lent to nodes. */
  readonly remain: number
  /** What was charged to the account so far; to that of a budget, in its period. */
  readonly used: number
  /** Part of the balance that is not lent to any node. */
  readonly free: number
  /** Quota units lent to the node, minus the charges that the node has reported. */
  readonly amount: number
}

/** Report about a node's open holds (reservations for running calls) on one account, in quota units. */
export interface HoldReport {
  readonly account: AccountName
  /** Sum of the node's open holds on the account. */
  readonly held: number
  /**
   * Expected charge of these holds, for a token or a budget. The bank charges it if the node stops
   * responding.
   */
  readonly estimate: number
}

/** Answer of the bank to a report. */
export interface BankStatement {
  /** States of the accounts in the report. */
  readonly states: readonly AccountState[]
  /**
   * Accounts that another database session has locked. Calls that are charged to one of them were not booked.
   */
  readonly locked: readonly AccountName[]
}

/**
 * The bank as one node uses it: it lends quota to nodes and books their charges. `docs/ledger.md: Many
 * nodes`. Methods reject with `StoreUnavailable` if the database is unreachable. Whether a rejected request
 * took effect is known only after the next report.
 */
export interface Bank {
  /**
   * Requests loans. Resolves to one result per request, in order: undefined for an unknown token, `locked` if
   * another database session has locked the row of an account. `left` are the tickets of calls that no longer
   * wait; null stands for all calls of the node.
   */
  acquire(
    requests: readonly LoanRequest[],
    left?: readonly (number | null)[],
  ): Promise<readonly (LoanResponse | 'locked' | undefined)[]>
  /**
   * Reports settled calls, as the JSON texts in the outbox, and open holds. A call that is reported several
   * times counts once. Also renews the node's leases for another minute.
   */
  apply(calls: readonly string[], held: readonly HoldReport[]): Promise<BankStatement>
  /**
   * Resolves to the states of all accounts that the node borrows from. Also takes back the leases of nodes
   * that stopped responding.
   */
  compare(): Promise<readonly AccountState[]>
  /**
   * Returns what the node has borrowed from these accounts, except `keep` quota units of each. Locked
   * accounts are skipped.
   */
  release(
    remainders: readonly { readonly account: AccountName; readonly keep: number }[],
  ): Promise<readonly AccountState[]>
  /**
   * Returns everything that the node has borrowed, even for open holds, except from locked accounts. Then
   * removes the node.
   */
  leave(): Promise<void>
}
