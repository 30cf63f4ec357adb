import type { PeriodBudget } from '../../domain/budget.ts'
import type { ManagedUser, User } from '../../domain/records/user.ts'
import type { Token } from '../../domain/records/token.ts'
import type { TokenChange } from '../../store/operations/tokens.ts'
import type { UserChange } from '../../store/operations/users.ts'
import type { TokenWithKey } from '../../store/operations/find-accounts.ts'
import type { LoanQueuePlace } from '../../store/bank.ts'
import type { Account } from './balance.ts'
import type { ChargedBudget, ChargedBalances } from './charged-balances.ts'
import type { Unaffordable } from './quota-refusal.ts'

/** The token of an API key, its owner, and the account that its calls are charged to. */
export interface TokenWithAccount {
  readonly token: Token
  readonly user: User
  readonly account: Account
}

/** Outcome of borrowing quota from the bank, the database that nodes share. */
export interface LoanOutcome {
  /** The accounts after borrowing. They may be other objects than the ones passed to `borrow`. */
  readonly payer: ChargedBalances
  /** Why nothing was lent. Absent if quota was lent, even if other calls have already spent it. */
  readonly refusal?: Unaffordable
  /** Whether other processes may return enough borrowed quota even if no call ends. */
  readonly isReturnable?: boolean | undefined
  /** Order of the call among the waiting calls of all processes; undefined if it does not wait. */
  readonly order?: number | undefined
}

/**
 * Source of the accounts that calls are charged to: a database that only this node uses, or leases from a
 * shared one.
 */
export interface AccountSource {
  /**
   * Whether quota is borrowed from a bank, the database that nodes share. Then more may be free than this
   * process knows.
   */
  readonly lends: boolean
  /** The cached account of a token, unless it may have changed. Does not access the database. */
  get(tokenId: number): Account | undefined
  /**
   * The account of a token, read if it is not cached; undefined for an unknown token. The caller must charge
   * it in the same turn of the event loop, before it can be evicted.
   */
  load(tokenId: number): Promise<Account | undefined>
  /** The account of the key with this HMAC, including deleted tokens; undefined for an unknown key. */
  findByKeyHash(keyHash: string): Promise<TokenWithAccount | undefined>
  /**
   * The cached accounts of these budgets, to which a call of this account is charged; undefined if one of
   * them must be loaded.
   */
  budgets(account: Account, periodBudgets: readonly PeriodBudget[]): readonly ChargedBudget[] | undefined
  /** Loads the accounts of these budgets, so that `budgets` can return them. */
  loadBudgets(periodBudgets: readonly PeriodBudget[]): Promise<void>
  /**
   * Resolves to the accounts once `amount` is free on all of them, which may require a loan. Rejects with
   * `Unaffordable`, which states what remains, if that is impossible, or if the token or user may make no calls.
   */
  ensureAffordable(payer: ChargedBalances, amount: number): Promise<ChargedBalances>
  /** Borrows what the open holds on these accounts lack; if that much is not free, all that is. */
  coverHolds(payer: ChargedBalances): Promise<void>
  /**
   * Borrows quota to make `amount` affordable. If other nodes hold that quota, asks them to return what they
   * do not need. With `place`, the call joins the bank's queue of the waiting calls of all processes.
   */
  borrow(payer: ChargedBalances, amount: number, place?: Omit<LoanQueuePlace, 'amount'>): Promise<LoanOutcome>
  /**
   * Borrows quota by which the hold of a running call can grow, even if its token or user may make no more
   * calls. States no amounts of budgets, because they may have changed since the call began.
   */
  borrowForHold(hold: ChargedBalances, by: number): Promise<LoanOutcome>
  /** Removes the call with this ticket from the bank's queue of waiting calls. */
  leave(ticket: number): void
  /**
   * Called after quota of these accounts has become free in this process; calls of other processes may wait
   * for it.
   */
  released(payer: ChargedBalances): void
  /**
   * Changes a user; resolves to undefined for an unknown user. A changed quota can be spent only once it is
   * durable.
   */
  changeUser(change: UserChange): Promise<ManagedUser | undefined>
  /**
   * Changes a token, and the limits by which its calls are admitted; resolves to undefined if the user has no
   * such token.
   */
  changeToken(change: TokenChange): Promise<TokenWithKey | undefined>
}
