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
export function withPart(parts: readonly StreamedPart[], part: StreamedPart): readonly StreamedPart[] {
  const same = parts.find(({ first }) => first === part.first)
  if (same) return same.tokens >= part.tokens ? parts : parts.map((one) => (one === same ? part : one))
  const last = parts.at(-1)
  if (!last || parts.length < MAX_PARTS) return [...parts, part]
  return [...parts.slice(0, -1), { ...last, tokens: last.tokens + part.tokens }]
}

/** Tokens of all parts together, counting each event once: of overlapping parts only the new events count. */
export function streamedTokens(parts: readonly StreamedPart[]): number {
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
