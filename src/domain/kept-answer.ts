/**
 * Uses of kept answers: for requests that repeat an idempotency key, and for equal requests.
 * `docs/api.md: Idempotency keys`.
 */
export const ANSWER_KINDS = ['idempotency', 'cache'] as const
export type AnswerKind = (typeof ANSWER_KINDS)[number]

/** Owner of the bytes of answers that have a bound of their own; no user has this id. */
export const NO_OWNER = 0

/** Which answers are removed; all that is given must match. */
export interface RemovalFilter {
  readonly kind: AnswerKind
  readonly userId?: number | undefined
  readonly tokenId?: number | undefined
  readonly model?: string | undefined
}

/** Status and headers of an answer. */
export interface AnswerHead {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
}

/** An answer that is kept, without its content. */
export interface KeptAnswer {
  readonly kind: AnswerKind
  /** HMAC of what finds the answer. */
  readonly lookup: string
  readonly answerId: string
  readonly userId: number
  readonly tokenId: number
  /** Public name of the model that was asked for. */
  readonly model: string
  readonly head: AnswerHead
  /** What its user has to know about it, in a form of its own; stored encrypted. */
  readonly facts: string
  /** Number of the parts in which the content is stored. */
  readonly parts: number
  /** Bytes of the content. */
  readonly bytes: number
  /** Unix milliseconds. */
  readonly createdMs: number
  readonly expiresMs: number
}

const DAY_MS = 86_400_000

/** The day of a time, in days since 1970-01-01, UTC. */
export function dayOf(ms: number): number {
  return Math.floor(ms / DAY_MS)
}
