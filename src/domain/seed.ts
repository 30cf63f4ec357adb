import type { TermChanges } from './call-terms.ts'
import type { Role } from './user.ts'

/** A declared API key, created if its user has none of that name. `docs/configuration.md: Users`. */
export interface TokenSeed {
  readonly name: string
  /** Base62, without `sk-`; undefined = generated. */
  readonly key: string | undefined
  /** Undefined = not declared: a new token is enabled, an existing one keeps its status. */
  readonly status: 1 | 2 | undefined
  /** Unix seconds; −1 = never. */
  readonly expired_time: number
  /** Whole quota units. */
  readonly remain_quota: number
  readonly unlimited_quota: boolean
  readonly model_limits_enabled: boolean
  /** Comma-separated. */
  readonly model_limits: string
  /** Addresses and CIDRs, one a line; null = no restriction. */
  readonly allow_ips: string | null
  /** Empty = the user's own group. */
  readonly group: string
  /** JSON map of vendor → group; empty = `group`. */
  readonly vendor_routes: string
  /** Applied at every load, like a declared status. */
  readonly terms?: TermChanges | undefined
}

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
