/**
 * Milliseconds for which ids of native responses (not converted by the gateway) are remembered: as long as
 * providers store the responses.
 */
export const NATIVE_RETENTION_MS = 30 * 24 * 3_600_000

/** Maximum number of previous responses from which a conversation is rebuilt. */
export const MAX_PREVIOUS_RESPONSES = 1_000

/** A response of the Responses API that clients can continue or read by its id. */
export interface StoredResponse {
  /** Id that the gateway issued. */
  readonly id: string
  /** The response's owner; other users cannot use the id. */
  readonly userId: number
  /** Model as the client requested it. */
  readonly model: string
  /** Group that the call was charged to. */
  readonly group: string
  /** Name of the channel that created the response. `keyTag` is a hash of the channel's key that was used. */
  readonly channel: string
  readonly keyTag: string
  /** Id at the upstream; empty for a response that the gateway converted, which only the gateway stores. */
  readonly upstreamId: string
  /** Number of tokens of its prompt and output, which are part of the prompt if a request continues it. */
  readonly tokens: number
  /** Id of the response that this one continues; null for none. */
  readonly previousId: string | null
  readonly createdMs: number
  readonly expiresMs: number
  /** Id of the call whose quota stays reserved until a background response ends; null for none. */
  readonly callId: string | null
  /**
   * Prices at which the call `callId` began, as the text that `priceSetText` makes; null without such a call.
   */
  readonly rate: string | null
  /** Set if the call `callId` offered tools without a known price. */
  readonly priceIncomplete?: boolean
}

/** A background response, with everything that nodes have recorded about it. */
export interface BackgroundOutcome {
  readonly response: StoredResponse
  /** How the response ended, if a node has recorded that. */
  readonly outcome: string | null
  readonly streamed: readonly StreamedPart[]
}

/** Input and output of a stored response, as JSON texts. */
export interface StoredContent {
  /** JSON array of the input items of the request itself, without those of previous responses. */
  readonly input: string
  /** JSON of the response object, as the client received it. */
  readonly response: string
}

/** Which provider account created encrypted reasoning; only that account can decrypt it. */
export interface ReasoningOrigin {
  /** Keyed hash of the encrypted reasoning and its owner, by which the reasoning is found again. */
  readonly hash: string
  readonly channel: string
  readonly keyTag: string
}

/** Prefix of the ids of native responses. It contains the time, so that sorting ids sorts by time. */
export function nativeResponseIdPrefix(issuedMs: number): string {
  return `resp_${issuedMs.toString(16).padStart(12, '0')}`
}

/** A part of a background response that was streamed to a client. */
export interface StreamedPart {
  /** Sequence number of the part's first event; `last` is that of its last event. */
  readonly first: number
  readonly last: number
  /** Number of tokens in the texts of its events. */
  readonly tokens: number
}

/** Maximum number of recorded parts; the tokens of further parts are added to the last. */
const MAX_PARTS = 1_000

/**
 * Adds a part to those recorded of a background response. If a part that began at the same event is already
 * recorded, the longer of both is kept.
 */
export function addStreamedPart(parts: readonly StreamedPart[], part: StreamedPart): readonly StreamedPart[] {
  const same = parts.find(({ first }) => first === part.first)
  if (same) return same.tokens >= part.tokens ? parts : parts.map((one) => (one === same ? part : one))
  const last = parts.at(-1)
  if (!last || parts.length < MAX_PARTS) return [...parts, part]
  return [...parts.slice(0, -1), { ...last, tokens: last.tokens + part.tokens }]
}

/** Number of tokens of all parts together. Events that several parts contain are counted once. */
export function countStreamedTokens(parts: readonly StreamedPart[]): number {
  let reached = -1
  let tokens = 0
  for (const part of parts.toSorted((a, b) => a.first - b.first || b.last - a.last)) {
    const fresh = part.last - Math.max(reached, part.first - 1)
    if (fresh <= 0) continue
    tokens += (part.tokens * fresh) / (part.last - part.first + 1)
    reached = part.last
  }
  return Math.ceil(tokens)
}

/**
 * Which provider account created a native response and its encrypted reasoning; stored when the call is
 * settled.
 */
export interface Provenance {
  /** Hash that identifies the channel's key that was used. */
  readonly keyTag: string
  /** The response that clients can refer to by id; null if the upstream does not store it. */
  readonly response: NativeResponseRecord | null
  /** HMACs of encrypted reasoning, which only this account can decrypt. */
  readonly reasoning: readonly string[]
}

/** A native response that its upstream stores; the fields are those of `StoredResponse`. */
export interface NativeResponseRecord {
  readonly id: string
  readonly upstreamId: string
  readonly tokens: number
  readonly previousId: string | null
}
