import type { Token } from '../domain/token.ts'
import type { User } from '../domain/user.ts'

/** Who makes a relay call: a live key, and its owner. */
export interface Caller {
  readonly token: Token
  readonly user: User
}
