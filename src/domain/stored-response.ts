import type { StreamedPart } from './streamed-part.ts'

/** How long the ids of native responses are known: as long as providers store the responses themselves. */
export const NATIVE_RETENTION_MS = 30 * 24 * 3_600_000

/** Responses of the longest chain that is rebuilt. */
export const MAX_CHAIN = 1_000

/** Response that clients may continue or read by the id that the gateway issued. */
export interface StoredResponse {
  /** Issued by the gateway. */
  readonly id: string
  /** Owner: ids of others are unknown to a user. */
  readonly userId: number
  /** Model as the client requested it. */
  readonly model: string
  /** Group that the call was charged to. */
  readonly group: string
  /** Channel that created it, by name, and a tag of the key that was used. */
  readonly channel: string
  readonly keyTag: string
  /** Id at the upstream; empty for a converted response, which only the gateway keeps. */
  readonly upstreamId: string
  /** Tokens of the context that a continuing call is charged for: prompt and output. */
  readonly tokens: number
  /** Response that it continues; null = none. */
  readonly previousId: string | null
  readonly createdMs: number
  readonly expiresMs: number
  /** Input and output of a converted response; null for a native one. */
  readonly content: StoredContent | null
  /** Call whose hold a background response keeps open; null = none. */
  readonly callId: string | null
  /** Prices that this call was admitted at, as `priceSetText` writes them; null without a call. */
  readonly rate: string | null
  /** This call offered tools without a price. */
  readonly priceIncomplete?: boolean
}

/** Background response, with all that nodes noted of it. */
export interface BackgroundOutcome {
  readonly response: StoredResponse
  /** Its end, where a node noted one. */
  readonly outcome: string | null
  readonly streamed: readonly StreamedPart[]
}

/** Input and output of a kept response, as JSON texts. */
export interface StoredContent {
  /** Array of the request's own input items. */
  readonly input: string
  /** Response object as the client got it. */
  readonly response: string
}

/** Numbers of the parts that a large content is stored in, each part in a row of its own. */
export interface ContentParts {
  readonly inputParts: number
  readonly responseParts: number
}

/** Origin of encrypted reasoning, which only its account can read. */
export interface ReasoningOrigin {
  /** HMAC of the encrypted content and its owner. */
  readonly hash: string
  readonly channel: string
  readonly keyTag: string
}

/** Beginning of the ids of native responses that are issued in a millisecond: they sort by their time. */
export function idBeginning(issuedMs: number): string {
  return `resp_${issuedMs.toString(16).padStart(12, '0')}`
}
