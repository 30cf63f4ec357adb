import type { ApiKeys } from '../auth/api-keys.ts'
import type { OidcSignIns } from '../auth/oidc/oidc-sign-ins.ts'
import type { Passwords } from '../auth/passwords.ts'
import type { SignIns } from '../auth/sign-ins.ts'
import type { Settings } from '../domain/settings.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Store } from '../store/store.ts'
import type { UpstreamClient } from '../upstreams/upstream-client.ts'
import type { LiveSettings } from './settings/live-settings.ts'

/** The inputs of a database backup. */
export interface BackupParts {
  /** `sqlite:PATH`, or the URL of a server. */
  readonly databaseUrl: string
  /** The file of the secret; undefined if it comes from GATEWAY_SECRET. */
  readonly secretFile: string | undefined
}

/** The services of account management, shared with calls, so that a change counts for the next call. */
export interface ManagementParts extends BackupParts {
  readonly store: Pick<Store, 'read' | 'write'>
  readonly ledger: Pick<Ledger, 'changeToken' | 'changeUser'>
  readonly apiKeys: ApiKeys
  readonly passwords: Passwords
  /** The live settings. */
  readonly settings: () => Settings
  readonly nowMs: () => number
}

/** Further services, for sign-ins and the administration of channels, options and prices. */
export interface AdministrationParts extends ManagementParts {
  readonly liveConfig: LiveSettings
  readonly upstreams: UpstreamClient
  readonly signIns: SignIns
  readonly oidc: OidcSignIns
  /** Hash by which the store looks up access tokens. */
  readonly hashAccessToken: (accessToken: string) => string
}
