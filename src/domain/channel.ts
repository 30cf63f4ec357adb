import type { AllowedField } from './allowed-field.ts'
import type { ProtocolName } from './protocols.ts'

export type { ProtocolName }

/** Limit on requests and on tokens (prompt and output) within a window. 0 = off. */
export interface RateLimit {
  readonly requests: number
  readonly tokens: number
  readonly windowMs: number
}

/** How a channel's URLs are built and its requests signed, with what that takes. */
export type ProviderSettings =
  | {
      readonly name: 'azure'
      /** Undefined for the v1 API, which has no dated versions. */
      readonly apiVersion: string | undefined
    }
  | { readonly name: 'bedrock'; readonly region: string }
  | {
      readonly name: 'vertex'
      /** Undefined for the service account's own. */
      readonly project: string | undefined
      readonly location: string
    }

/** Changes to the bodies of a channel's requests; members are top-level ones of the upstream's dialect. */
export interface ChannelEdits {
  /** Instructions in front of the client's own; empty = none. */
  readonly systemPrompt: string
  /** JSON texts in place of the client's. */
  readonly set: ReadonlyMap<string, string>
  /** JSON texts where the client has none. */
  readonly defaults: ReadonlyMap<string, string>
  readonly remove: readonly string[]
}

/** A configured upstream. `docs/configuration.md: Channels`. */
export interface Channel {
  readonly name: string
  /** Set over HTTP, not by the operator: it may not lead to a cloud's metadata service. */
  readonly isSetOverHttp?: true
  /** Dialects that its upstream speaks, at least one, all with the same keys below the same address. */
  readonly protocols: readonly ProtocolName[]
  /** Absent for an upstream that takes the dialects as they are, with a key in a header. */
  readonly provider?: ProviderSettings
  /** Ends with the version, without a slash: `https://api.example.com/v1`. */
  readonly baseUrl: string
  /** URL of the proxy that its connections go through; may hold a password. */
  readonly proxy?: string
  /** Interval of requests to the channel while it is in cooldown, in milliseconds; absent = none. */
  readonly probeMs?: number
  /** Statuses of its responses, and those that they are taken for. */
  readonly statusMapping?: ReadonlyMap<number, number>
  /** Credentials, used in turn; empty for an upstream without authentication. */
  readonly keys: readonly string[]
  readonly models: readonly string[]
  readonly groups: readonly string[]
  /** Higher values are tried first. */
  readonly priority: number
  /** Share among channels of equal priority. */
  readonly weight: number
  /** Requested model → the upstream's name for it. */
  readonly modelMapping: ReadonlyMap<string, string>
  readonly edits?: ChannelEdits
  readonly allow: ReadonlySet<AllowedField>
  readonly disableStore: boolean
  readonly passThrough: boolean
  /** Added to each upstream request; names in lower case. */
  readonly headers: ReadonlyMap<string, string>
  readonly rateLimit: RateLimit
  /** Whether the rest of a response is read, and charged as reported, after the client has left. */
  readonly onClientGone: 'cancel' | 'drain'
  /** Milliseconds. */
  readonly timeouts: {
    readonly connect: number
    readonly first_byte: number
    readonly idle: number
    readonly total: number
  }
}

/** Whether an address is OpenRouter's, which takes the fields of all its providers. */
export function isRouter(baseUrl: string): boolean {
  return /(?:^|\.)openrouter\.ai$/.test(new URL(baseUrl).hostname)
}
