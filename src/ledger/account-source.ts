import type { ManagedUser } from '../domain/profile.ts'
import type { Token } from '../domain/token.ts'
import type { User } from '../domain/user.ts'
import type { TokenChange } from '../store/operations/change-token.ts'
import type { UserChange } from '../store/operations/change-user.ts'
import type { KeyedToken } from '../store/operations/keyed-tokens.ts'
import type { Account } from './balance.ts'

/** Whose key that is, and what it can spend here. */
export interface FoundAccount {
  readonly token: Token
  readonly user: User
  readonly account: Account
}

/**
 * The accounts that calls are made on, whether this node has their balances to itself or borrows from them.
 */
export interface AccountSource {
  /**
   * The account of a token, if it was used before and nothing is known to have changed; makes no database
   * call.
   */
  get(tokenId: number): Account | undefined
  /**
   * The account of a token, read if it must be; undefined if there is no such token. Charge it in the same
   * turn.
   */
  load(tokenId: number): Promise<Account | undefined>
  /** Whose key has that HMAC; undefined if it is nobody's. Deleted tokens are found too. */
  findByKeyHash(keyHash: string): Promise<FoundAccount | undefined>
  /**
   * The account, once it can afford so much, if it ever can: where balances are borrowed, it waits for a
   * loan. Rejects with `insufficient_quota` where it cannot, which names what remains.
   */
  ensureAffordable(account: Account, amount: number): Promise<Account>
  /**
   * Changes a user; undefined if there is no such user. A quota that changes counts when it is durable, not
   * before.
   */
  changeUser(change: UserChange): Promise<ManagedUser | undefined>
  /** Changes a token, and what of it calls are admitted by; undefined if that user has no such token. */
  changeToken(change: TokenChange): Promise<KeyedToken | undefined>
}
