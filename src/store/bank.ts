import type { Token } from '../domain/token.ts'
import type { User } from '../domain/user.ts'

/** The name of an account in the bank: a user's, or a token's. */
export type AccountName = `u:${number}` | `t:${number}`

/** What a node asks to be lent for calls of one token. Amounts are quota units. */
export interface LoanRequest {
  /** The token, by its id or by the HMAC of its key. */
  readonly token: number | { readonly keyHash: string }
  /** What must be lent beyond what the node has; 0 = nothing must. */
  readonly need: { readonly token: number; readonly user: number }
  /** More than this is not wanted, unless it is needed. */
  readonly max: { readonly token: number; readonly user: number }
}

/** What the bank said to a request. */
export interface Loan {
  /** What was needed was lent. Not so where too little is free, or token or user are not to be used. */
  readonly granted: boolean
  readonly token: Token
  readonly user: User
  /** Where the node stands now. */
  readonly tokenState: AccountState
  readonly userState: AccountState
}

/** Where a node stands with an account. */
export interface AccountState {
  readonly account: AccountName
  /** Goes up whenever the leases of the account are called in. */
  readonly epoch: number
  /** What the account has, lent or not. */
  readonly remain: number
  /** What could still be lent. */
  readonly free: number
  /** What the node has of it, and has not reported as spent. */
  readonly amount: number
}

/** What a node has open on an account. */
export interface HeldReport {
  readonly account: AccountName
  /** The sum of its open holds. */
  readonly held: number
  /** What they are expected to cost, should the node be lost; of a token only. */
  readonly estimate: number
}

/**
 * The bank as one node sees it; `docs/ledger.md: Many nodes`. Everything rejects with `StoreUnavailable`
 * where the database is out of reach; what came of a call that rejected is not known, and the next report
 * tells.
 */
export interface Bank {
  /** Answers each request in order; undefined for a token that is not there. */
  acquire(requests: readonly LoanRequest[]): Promise<readonly (Loan | undefined)[]>
  /**
   * Reports settled calls (as the outbox keeps them: JSON), each counted once however often it is reported,
   * and what is held. It is what keeps the node's leases for another minute.
   */
  apply(calls: readonly string[], held: readonly HeldReport[]): Promise<readonly AccountState[]>
  /** Gives back all of these accounts but what is kept. */
  release(
    kept: readonly { readonly account: AccountName; readonly keep: number }[],
  ): Promise<readonly AccountState[]>
  /** Gives back everything, held or not, and takes leave. */
  leave(): Promise<void>
}
