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
export interface ContentPartCounts {
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
export function idPrefix(issuedMs: number): string {
  return `resp_${issuedMs.toString(16).padStart(12, '0')}`
}

/** A part of a response that was streamed to a client. */
export interface StreamedPart {
  /** Numbers of its first and its last event. */
  readonly first: number
  readonly last: number
  /** Number of tokens of its texts. */
  readonly tokens: number
}

/** Maximum number of separate parts; the tokens of further ones are added to the last. */
const MAX_PARTS = 1_000

/** Adds a part. It replaces a part that began at the same event and was shorter. */
export function addStreamedPart(parts: readonly StreamedPart[], part: StreamedPart): readonly StreamedPart[] {
  const same = parts.find(({ first }) => first === part.first)
  if (same) return same.tokens >= part.tokens ? parts : parts.map((one) => (one === same ? part : one))
  const last = parts.at(-1)
  if (!last || parts.length < MAX_PARTS) return [...parts, part]
  return [...parts.slice(0, -1), { ...last, tokens: last.tokens + part.tokens }]
}

/** Tokens of all parts together, counting each event once: of overlapping parts only the new events count. */
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

/** The provider account that created what a native response refers to; stored with the charge of its call. */
export interface Provenance {
  /** Tag of the key with which the settled call used its channel. */
  readonly keyTag: string
  /** Response that clients may refer to; null if the upstream does not store it. */
  readonly response: ProvenResponse | null
  /** Hashes of encrypted reasoning, which only this account can decrypt. */
  readonly reasoning: readonly string[]
}

/** A response as its upstream stores it; the fields are those of `StoredResponse`. */
export interface ProvenResponse {
  readonly id: string
  readonly upstreamId: string
  readonly tokens: number
  readonly previousId: string | null
}

/** Signed parts of a reply, stored because the client's next turn returns the reply without them. */
export interface StoredSignature {
  /** HMAC of the owner and of the part of the reply to which the signature belongs. */
  readonly hash: string
  /** JSON text: the account that signed, and what it signed. Encrypted in the database. */
  readonly content: string
}
