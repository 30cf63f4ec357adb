import type { Response } from '@sluice/http1'
import type { Request } from '../http/request.ts'

/** Fields of a call in the log, beside its route and status. Scalars only: no part of a prompt or a key. */
export interface CallRecord {
  userId?: number
  tokenId?: number
  model?: string
  channel?: string
  upstreamModel?: string
  /** The model that the call went on with. */
  fallback?: string
  stream?: boolean
  attempts?: number
  firstByteMs?: number
  /** All tokens of the prompt, cached or not. */
  inputTokens?: number
  outputTokens?: number
  /** The total of tokens that the provider reported, where it cannot be true and was not charged. */
  ignoredTotal?: number
  quota?: number
  reason?: string
  /** Cause of the last failed attempt. */
  failure?: string
}

/** A client's request to relay. */
export interface IncomingCall {
  readonly id: string
  readonly request: Request
  readonly response: Response
  readonly record: CallRecord
  /** Unix milliseconds. */
  readonly startedMs: number
  /** The same moment by a clock that nobody sets, `performance.now()`. */
  readonly startedAt: number
}
