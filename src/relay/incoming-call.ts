import type { Response } from '@sluice/http1'
import type { Request } from '../http/request.ts'

/**
 * Fields of a call in the log, in addition to its route and status. Only scalars, never a part of a prompt or
 * a key.
 */
export interface CallRecord {
  userId?: number
  tokenId?: number
  model?: string
  channel?: string
  upstreamModel?: string
  /** The fallback model that served the call. */
  fallback?: string
  stream?: boolean
  attempts?: number
  firstByteMs?: number
  /** All tokens of the prompt, whether cached or not. */
  inputTokens?: number
  outputTokens?: number
  /** The token total that the provider reported, if it is implausible and was not charged. */
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
  /** Start of the call by the monotonic clock `performance.now()`, in milliseconds. */
  readonly startedAt: number
}
