import type { Caller } from '../accounts/authentication/caller.ts'
import type { SimulatedCall, Simulation } from '../domain/simulation.ts'
import type { LastDeliveries } from '../alerts/last-deliveries.ts'
import type { ApiKeys } from '../accounts/authentication/api-keys.ts'
import type { OidcSignIns } from '../accounts/authentication/oidc/oidc-sign-ins.ts'
import type { Passwords } from '../accounts/authentication/passwords.ts'
import type { SignIns } from '../accounts/authentication/sign-ins.ts'
import type { Ledger } from '../accounts/ledger/ledger.ts'
import type { DeclaredFile } from '../domain/declared-file.ts'
import type { Guard } from '../domain/guard.ts'
import type { Channel } from '../domain/records/channel.ts'
import type { Json } from '../domain/json.ts'
import type { Price } from '../domain/price.ts'
import type { RunningCall } from '../domain/running-call.ts'
import type { Settings, StoredConfiguration } from '../domain/settings.ts'
import type { DataSource } from '../domain/price-data/vendor-service.ts'
import type { Store } from '../store/store.ts'
import type { GuardFigures } from '../telemetry/guard-figures.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { ChannelHealth } from '../upstreams/channel-health.ts'
import type { ChannelMinutes } from '../upstreams/channel-minutes.ts'
import type { KeyRings } from '../upstreams/key-ring.ts'
import type { ContentLog } from '../content/content-log.ts'
import type { ModelEnds } from '../upstreams/model-ends.ts'
import type { ProviderLimits } from '../upstreams/provider-limits.ts'
import type { UpstreamClient } from '../upstreams/upstream-client.ts'
import type { ImportPlanner } from './imports.ts'
import type { LiveCalls } from './usage/live-calls.ts'

/** The inputs of a database backup. */
export interface BackupInputs {
  /** The data folder. */
  readonly dataDir: string
  /** `sqlite:PATH`, or the URL of a server. */
  readonly databaseUrl: string
  /** The file of the secret; undefined if it comes from GATEWAY_SECRET. */
  readonly secretFile: string | undefined
}

/** The services of account management, shared with calls, so that a change applies to the next call. */
export interface ManagementServices extends BackupInputs {
  readonly store: Pick<Store, 'read' | 'write'>
  readonly ledger: Pick<Ledger, 'changeToken' | 'changeUser'>
  readonly apiKeys: ApiKeys
  readonly passwords: Passwords
  /** What was said in calls, where it is kept. */
  readonly content: Pick<ContentLog, 'delete'>
  /** The live settings. */
  readonly settings: () => Settings
  readonly nowMs: () => number
}

/** Observations about channels, from the calls of this node. */
interface ChannelObservations {
  readonly health: ChannelHealth
  readonly keyRings: KeyRings
  readonly providerLimits: ProviderLimits
  readonly minutes: ChannelMinutes
}

/** Questions to the other nodes, `kind` or `kind:argument`, and the answers of this one. */
interface NodeQuestions {
  others(question?: string): Promise<readonly string[]>
  answerWith(report: (argument: string) => Promise<string>, kind?: string): void
}

/** The calls under way on this node. */
interface RunningSource {
  list(): readonly RunningCall[]
  /** Stops a call of this user, or of any user if undefined. Returns false if there is no such call. */
  stop(id: string, userId: number | undefined): boolean
}

/** Additional services, for sign-ins and the administration of channels, options and prices. */
export interface AdministrationServices extends ManagementServices {
  readonly liveConfig: LiveSettings
  readonly upstreams: UpstreamClient
  readonly channels: ChannelObservations
  /** The name of this node. */
  readonly node: string
  /** Reports of the other nodes; undefined if there cannot be any. */
  readonly otherNodes: NodeQuestions | undefined
  readonly running: RunningSource
  readonly imports: ImportPlanner
  readonly liveCalls: LiveCalls
  /** Determines where a call would go, without making it. */
  readonly simulate: (caller: Caller, call: SimulatedCall) => Promise<Simulation>
  readonly signIns: SignIns
  readonly oidc: OidcSignIns
  readonly modelEnds: ModelEnds
  /** What guards have decided on this node. */
  readonly guardFigures: GuardFigures
  readonly content: Pick<ContentLog, 'find' | 'read' | 'delete' | 'bytesToRead'>
  /** Takes memory for bytes that are about to be read on behalf of a user, in turn with its other reads. */
  readonly holdToRead: (bytes: number) => Promise<void>
  /** Undefined if the environment names no collector. */
  readonly telemetry: Telemetry | undefined
  /** Receivers of alerts: their tags, and what was last sent to each. */
  readonly alerts: { readonly tag: (url: string) => string; readonly deliveries: LastDeliveries }
  /** Computes the hash by which the store looks up access tokens. */
  readonly hashAccessToken: (accessToken: string) => string
}

/** The settings declared by the configuration file or the environment, which can be changed only there. */
export interface DeclaredSettings {
  readonly channels: readonly Channel[]
  /** Where the channels are declared. */
  readonly by: 'gateway.yaml' | 'environment'
  readonly options: ReadonlySet<string>
  readonly groups: ReadonlySet<string>
  readonly models: ReadonlySet<string>
  /** Models whose price is in gateway.yaml. */
  readonly prices: ReadonlySet<string>
  /** Models that the prices file lists. */
  readonly listed: ReadonlySet<string>
  /** Values of the file with their lines. */
  readonly file: DeclaredFile
}

/** The price of a model in the data that come with the gateway, with their source and day. */
export interface BuiltInPrice extends DataSource {
  readonly price: Price | undefined
  /** The vendor whose list contains it. */
  readonly vendor: string | undefined
}

/** The part of the live configuration that can be changed over HTTP. */
export interface LiveSettings {
  readonly declared: DeclaredSettings
  /** The stored channel with that name, enabled or disabled; undefined if it conflicts with the file. */
  storedChannel(name: string): Channel | undefined
  /** Ids of channels that get no new calls while others can serve them. */
  readonly drained: ReadonlySet<number>
  /** The price of a model in the built-in data, from the list of a vendor. */
  builtInPrice(model: string, vendor: string | undefined): BuiltInPrice
  /** Reads a price as gateway.yaml would. Throws `invalid_request` with what is wrong. */
  readPrice(value: Json): Price
  /** Reads a guard as gateway.yaml would. Throws `invalid_request` with what is wrong. */
  readGuard(value: Json): Guard
  /** Reads the stored settings again, which another node may have changed. */
  reread(): Promise<void>
  /**
   * The channels set over HTTP, by name, as they would be after a change that is not made. Throws if the
   * change would.
   */
  preview(next: (stored: StoredConfiguration) => StoredConfiguration): Promise<ReadonlyMap<string, Channel>>
  /**
   * Changes the stored settings: `next` returns the new ones, `write` stores them. If they conflict with the
   * file, throws `invalid_request` with the schema's message and writes nothing. Resolves when they are live.
   */
  change<T>(next: (stored: StoredConfiguration) => StoredConfiguration, write: () => Promise<T>): Promise<T>
}
