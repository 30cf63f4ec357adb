import type { Token } from '../../domain/records/token.ts'
import type { User } from '../../domain/records/user.ts'

/** The authenticated principal of a relay call: a token and its owner. */
export interface Caller {
  readonly token: Token
  readonly user: User
}
