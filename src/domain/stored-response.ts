import type { StreamedPart } from './streamed-part.ts'

/** Time for which the ids of native responses are remembered: as long as providers store the responses. */
export const NATIVE_RETENTION_MS = 30 * 24 * 3_600_000

/** Maximum number of responses in a chain that is rebuilt. */
export const MAX_CHAIN = 1_000

/** Response that clients may continue or read by the id that the gateway issued. */
export interface StoredResponse {
  /** Issued by the gateway. */
  readonly id: string
  /** Owner; other users cannot use the id. */
  readonly userId: number
  /** Model as the client requested it. */
  readonly model: string
  /** Group that the call was charged to. */
  readonly group: string
  /** Name of the channel that created it, and a tag of the key that was used. */
  readonly channel: string
  readonly keyTag: string
  /** Id at the upstream; empty for a converted response, which only the gateway stores. */
  readonly upstreamId: string
  /** Tokens of its context, prompt and output, that a continuing call is charged for. */
  readonly tokens: number
  /** Response that it continues; null for none. */
  readonly previousId: string | null
  readonly createdMs: number
  readonly expiresMs: number
  /** Input and output of a converted response; null for a native one. */
  readonly content: StoredContent | null
  /** Call whose hold a background response keeps open; null for none. */
  readonly callId: string | null
  /** Prices at which this call was admitted, in the format of `priceSetText`; null without a call. */
  readonly rate: string | null
  /** Set if this call offered tools without a price. */
  readonly priceIncomplete?: boolean
}

/** Background response, with everything that nodes recorded about it. */
export interface BackgroundOutcome {
  readonly response: StoredResponse
  /** Its end, if a node has recorded it. */
  readonly outcome: string | null
  readonly streamed: readonly StreamedPart[]
}

/** Input and output of a kept response, as JSON texts. */
export interface StoredContent {
  /** Array of the request's own input items. */
  readonly input: string
  /** Response object as the client received it. */
  readonly response: string
}

/** Numbers of the parts in which a large content is stored, one row per part. */
export interface ContentParts {
  readonly inputParts: number
  readonly responseParts: number
}

/** Origin of encrypted reasoning, which only its provider account can decrypt. */
export interface ReasoningOrigin {
  /** HMAC of the encrypted content and its owner. */
  readonly hash: string
  readonly channel: string
  readonly keyTag: string
}

/** Prefix of the ids of native responses issued in a millisecond, so that ids sort by time. */
export function idBeginning(issuedMs: number): string {
  return `resp_${issuedMs.toString(16).padStart(12, '0')}`
}
