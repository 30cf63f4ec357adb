import type { ApiKeys } from '../auth/api-keys.ts'
import type { Passwords } from '../auth/passwords.ts'
import type { SignIns } from '../auth/sign-ins.ts'
import type { Settings } from '../domain/settings.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Store } from '../store/store.ts'
import type { UpstreamClient } from '../upstreams/upstream-client.ts'
import type { LiveSettings } from './settings/live-settings.ts'

/** What a copy of the database needs to know. */
export interface BackupParts {
  /** `sqlite:PATH`, or the address of a server. */
  readonly databaseUrl: string
  /** The file that holds the secret; undefined if the environment does (GATEWAY_SECRET). */
  readonly secretFile: string | undefined
}

/**
 * What account management works on: the same parts that calls go through, so that a change counts at the next
 * one.
 */
export interface ManagementParts extends BackupParts {
  readonly store: Store
  readonly ledger: Ledger
  readonly apiKeys: ApiKeys
  readonly passwords: Passwords
  /** The settings in force. */
  readonly settings: () => Settings
  readonly nowMs: () => number
}

/** Parts that sign-ins, and the administration of channels, options and prices, need beside those. */
export interface AdministrationParts extends ManagementParts {
  readonly liveConfig: LiveSettings
  readonly upstreams: UpstreamClient
  readonly signIns: SignIns
}
