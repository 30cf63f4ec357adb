import type { TermChanges } from './call-terms.ts'
import type { TokenSeed } from './records/token.ts'
import type { Role } from './role.ts'

/** A declared account, created if no user has that name. `docs/configuration.md: Users`. */
export interface UserSeed {
  /** Undefined = the next free id. */
  readonly id: number | undefined
  readonly username: string
  readonly role: Role
  /** Applied at every load of the configuration; undefined = not declared. */
  readonly status: 1 | 2 | undefined
  readonly group: string
  /** Whole quota units. */
  readonly quota: number
  readonly accessToken: string | undefined
  /** Applied at every load, like a declared status. */
  readonly terms?: TermChanges | undefined
  readonly tokens: readonly TokenSeed[]
}
