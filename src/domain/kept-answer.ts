/**
 * Why an answer is kept: `idempotency` for requests that repeat an idempotency key, `cache` for equal
 * requests. `docs/api.md: Idempotency keys`.
 */
export const ANSWER_KINDS = ['idempotency', 'cache'] as const
export type AnswerKind = (typeof ANSWER_KINDS)[number]

/** Owner of answers that count against a common limit instead of a user's; no user has this id. */
export const SHARED_ANSWERS_OWNER = 0

/** Which answers are removed: those that match all given fields. */
export interface RemovalFilter {
  readonly kind: AnswerKind
  readonly userId?: number | undefined
  readonly tokenId?: number | undefined
  readonly model?: string | undefined
}

/** HTTP status and headers of a kept answer. */
export interface AnswerHead {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
}

/** A kept answer without its body. */
export interface KeptAnswer {
  readonly kind: AnswerKind
  /** HMAC of the key by which the answer is found, such as the idempotency key or the request. */
  readonly lookup: string
  readonly answerId: string
  readonly userId: number
  readonly tokenId: number
  /** Public name of the requested model. */
  readonly model: string
  readonly head: AnswerHead
  /** Facts about the answer in a format that only `kind` defines; stored encrypted. */
  readonly facts: string
  /** Number of parts in which the body is stored. */
  readonly parts: number
  /** Size of the body in bytes. */
  readonly bytes: number
  /** Creation and expiry, in Unix milliseconds. */
  readonly createdMs: number
  readonly expiresMs: number
}

const DAY_MS = 86_400_000

/** The day of a time in Unix milliseconds, as the number of days since 1970-01-01 UTC. */
export function dayOf(ms: number): number {
  return Math.floor(ms / DAY_MS)
}
