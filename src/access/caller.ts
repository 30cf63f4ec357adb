import type { Token } from '../domain/token.ts'
import type { User } from '../domain/user.ts'
import type { Account } from '../ledger/balance.ts'

/** Who makes a relay call: a live key, its owner, and the account to charge. */
export interface Caller {
  readonly token: Token
  readonly user: User
  readonly account: Account
}
