import type { ApiKeys } from '../accounts/authentication/api-keys.ts'
import type { OidcSignIns } from '../accounts/authentication/oidc/oidc-sign-ins.ts'
import type { Passwords } from '../accounts/authentication/passwords.ts'
import type { SignIns } from '../accounts/authentication/sign-ins.ts'
import type { Settings } from '../domain/settings.ts'
import type { Ledger } from '../accounts/ledger/ledger.ts'
import type { Store } from '../store/store.ts'
import type { ChannelHealth } from '../upstreams/channel-health.ts'
import type { ChannelMinutes } from '../upstreams/channel-minutes.ts'
import type { KeyRings } from '../upstreams/key-ring.ts'
import type { UpstreamClient } from '../upstreams/upstream-client.ts'
import type { LiveCalls } from './usage/live-calls.ts'
import type { LiveSettings } from './settings/live-settings.ts'

/** The inputs of a database backup. */
export interface BackupParts {
  /** The data folder. */
  readonly dataDir: string
  /** `sqlite:PATH`, or the URL of a server. */
  readonly databaseUrl: string
  /** The file of the secret; undefined if it comes from GATEWAY_SECRET. */
  readonly secretFile: string | undefined
}

/** The services of account management, shared with calls, so that a change applies to the next call. */
export interface ManagementParts extends BackupParts {
  readonly store: Pick<Store, 'read' | 'write'>
  readonly ledger: Pick<Ledger, 'changeToken' | 'changeUser'>
  readonly apiKeys: ApiKeys
  readonly passwords: Passwords
  /** The live settings. */
  readonly settings: () => Settings
  readonly nowMs: () => number
}

/** Observations about channels, from the calls of this node. */
interface ChannelObservations {
  readonly health: ChannelHealth
  readonly keyRings: KeyRings
  readonly minutes: ChannelMinutes
}

/** Additional services, for sign-ins and the administration of channels, options and prices. */
export interface AdministrationParts extends ManagementParts {
  readonly liveConfig: LiveSettings
  readonly upstreams: UpstreamClient
  readonly channels: ChannelObservations
  /** The name of this node. */
  readonly node: string
  /** Reports of the other nodes; undefined if there cannot be any. */
  readonly otherNodes: { others(): Promise<readonly string[]> } | undefined
  readonly liveCalls: LiveCalls
  readonly signIns: SignIns
  readonly oidc: OidcSignIns
  /** Computes the hash by which the store looks up access tokens. */
  readonly hashAccessToken: (accessToken: string) => string
}
