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
import type { RefusedConfiguration, Settings, StoredConfiguration } from '../domain/settings.ts'
import type { DataSource } from '../domain/price-data/vendor-service.ts'
import type { Store } from '../store/store.ts'
import type { GuardFigures } from '../telemetry/guard-figures.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { ChannelHealth } from '../upstreams/channel-health.ts'
import type { ChannelMinutes } from '../upstreams/channel-minutes.ts'
import type { KeyRings } from '../upstreams/key-ring.ts'
import type { ContentLog } from '../content/content-log.ts'
import type { ModelRetirements } from '../upstreams/model-retirements.ts'
import type { ProviderLimits } from '../upstreams/provider-limits.ts'
import type { UpstreamClient } from '../upstreams/upstream-client.ts'
import type { ImportPlanner } from './imports.ts'
import type { BatchSource } from './batches/batches.ts'
import type { McpToolSource } from './mcp/mcp-tools.ts'
import type { LiveCalls } from './usage/live-calls.ts'

/** What a backup of the database needs. */
export interface BackupInputs {
  /** The data folder. */
  readonly dataDir: string
  /** `sqlite:PATH`, or the URL of a PostgreSQL server. */
  readonly databaseUrl: string
  /** File with the secret; undefined if the secret is in GATEWAY_SECRET. */
  readonly secretFile: string | undefined
}

/**
 * What account management needs. It uses the same objects as calls do, so that a change applies to the next
 * call.
 */
export interface ManagementServices extends BackupInputs {
  readonly store: Pick<Store, 'read' | 'write'>
  readonly ledger: Pick<Ledger, 'changeToken' | 'changeUser'>
  readonly apiKeys: ApiKeys
  readonly passwords: Passwords
  /** The content log: requests and answers of calls, if they are kept. */
  readonly content: Pick<ContentLog, 'delete'>
  /** Returns the current settings. */
  readonly settings: () => Settings
  readonly nowMs: () => number
}

/** What this node has observed about channels in its calls. */
interface ChannelObservations {
  readonly health: ChannelHealth
  readonly keyRings: KeyRings
  readonly providerLimits: ProviderLimits
  readonly minutes: ChannelMinutes
}

/** Asks the other nodes a question (`kind` or `kind:argument`), and answers theirs. */
interface NodeQuestions {
  others(question?: string): Promise<readonly string[]>
  answerWith(report: (argument: string) => Promise<string>, kind?: string): void
}

/** Selects stored answers; undefined fields match everything. */
interface AnswerFilter {
  readonly userId: number | undefined
  readonly tokenId: number | undefined
  readonly model: string | undefined
}

/** The calls that are running on this node. */
interface RunningSource {
  list(): readonly RunningCall[]
  /**
   * Stops a running call of this user, or of any user if `userId` is undefined. Returns false if there is no
   * such call.
   */
  stop(id: string, userId: number | undefined): boolean
}

/**
 * What is needed, in addition to `ManagementServices`, for sign-ins and for the administration of channels,
 * options and prices.
 */
export interface AdministrationServices extends ManagementServices {
  readonly liveConfig: LiveSettings
  readonly upstreams: UpstreamClient
  readonly channels: ChannelObservations
  /** The name of this node. */
  readonly node: string
  /** Asks the other nodes; undefined if the gateway cannot have any. */
  readonly otherNodes: NodeQuestions | undefined
  readonly running: RunningSource
  readonly batches: BatchSource
  readonly mcpTools: McpToolSource
  readonly imports: ImportPlanner
  readonly answers: { remove(filter: AnswerFilter & { readonly kind: 'cache' }): Promise<number> }
  readonly liveCalls: LiveCalls
  /** Determines which channels a call would try, without making it. */
  readonly simulate: (caller: Caller, call: SimulatedCall) => Promise<Simulation>
  readonly signIns: SignIns
  readonly oidc: OidcSignIns
  readonly modelEnds: ModelRetirements
  /** Statistics of what guards have decided on this node. */
  readonly guardFigures: GuardFigures
  readonly content: Pick<ContentLog, 'find' | 'read' | 'excerpt' | 'delete' | 'bytesToRead'>
  /**
   * Waits for the user's turn to read, and takes memory for a content that is about to be read for the user, for which it
   * waits `mostMs` at most. Resolves to a function that gives the memory back before the request ends.
   */
  readonly holdToRead: (bytes: number, mostMs?: number) => Promise<() => void>
  /** Ends the user's turn to read while the request waits for something else; its next read waits for a turn anew. */
  readonly endReads: () => void
  /** Undefined unless the environment names an OpenTelemetry collector. */
  readonly telemetry: Telemetry | undefined
  /** Alert receivers: hashes that identify them, and the last delivery to each. */
  readonly alerts: { readonly tag: (url: string) => string; readonly deliveries: LastDeliveries }
  /** Computes the hash by which the database finds an access token. */
  readonly hashAccessToken: (accessToken: string) => string
}

/** The settings that gateway.yaml or the environment declares. They can be changed only there. */
export interface DeclaredSettings {
  readonly channels: readonly Channel[]
  /** Where the channels are declared. */
  readonly by: 'gateway.yaml' | 'environment'
  readonly options: ReadonlySet<string>
  readonly groups: ReadonlySet<string>
  readonly models: ReadonlySet<string>
  /** Models whose price gateway.yaml states. */
  readonly prices: ReadonlySet<string>
  /** Models that the prices file contains. */
  readonly listed: ReadonlySet<string>
  /** The settings in gateway.yaml, with their lines. */
  readonly file: DeclaredFile
}

/** The price of a model in the built-in data, with their source and date. */
export interface BuiltInPrice extends DataSource {
  readonly price: Price | undefined
  /** The vendor in whose list the model was found. */
  readonly vendor: string | undefined
}

/** The configuration as it applies now, and changes of it over HTTP. */
export interface LiveSettings {
  readonly declared: DeclaredSettings
  /** The configuration file that was refused since one was last applied; undefined if none was. */
  readonly refused: RefusedConfiguration | undefined
  /**
   * The stored channel of that name, enabled or disabled; undefined if it is ignored because it conflicts
   * with gateway.yaml.
   */
  storedChannel(name: string): Channel | undefined
  /** Ids of drained channels, which get no new calls while others can serve them. */
  readonly drained: ReadonlySet<number>
  /** The built-in price of a model, preferably from the list of this vendor. */
  builtInPrice(model: string, vendor: string | undefined): BuiltInPrice
  /** Parses a price in the form of gateway.yaml. Throws `invalid_request`, which states the error. */
  readPrice(value: Json): Price
  /** Parses a guard in the form of gateway.yaml. Throws `invalid_request`, which states the error. */
  readGuard(value: Json): Guard
  /** Reads the stored settings again, because another node may have changed them. */
  reread(): Promise<void>
  /**
   * The channels set over HTTP, by name, as they would be after a change. Nothing is changed. Throws if the
   * change would be refused.
   */
  preview(next: (stored: StoredConfiguration) => StoredConfiguration): Promise<ReadonlyMap<string, Channel>>
  /**
   * Changes the settings that are stored: `next` returns the new ones, `write` stores them. When `next` is called, the
   * settings in effect are those that are stored, also if another node has changed them. If the new ones conflict
   * with gateway.yaml, throws `invalid_request` and writes nothing. Resolves when the change is in effect.
   */
  change<T>(next: (stored: StoredConfiguration) => StoredConfiguration, write: () => Promise<T>): Promise<T>
}
