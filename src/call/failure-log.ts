import type { Logger } from 'pino'
import type { Channel } from '../domain/records/channel.ts'
import type { UpstreamKey } from '../upstreams/key-ring.ts'
import type { Failure } from './failure.ts'
import { storableMessage, type ComparedRequestTexts } from './provider-messages.ts'
import type { ParsedRequest } from './request-stages.ts'
import type { IncomingCall } from './incoming-call.ts'

/** Maximum number of log lines in `WINDOW_MS`, for each thing that fails and each cause. */
const MAX_LINES = 5
/** Time in milliseconds for which the log lines of one cause are counted and limited. */
const WINDOW_MS = 60_000

/** The gateway's reaction to a failure. */
export type FailureReaction =
  | 'next key'
  | 'next channel'
  | 'next model'
  | 'returned to the client'
  | 'ended the stream'
  | 'gave up'

/**
 * Facts about a failed call that a warning may contain. Nothing of the client's request body may be logged.
 */
interface FailedCall {
  readonly incoming: Pick<IncomingCall, 'id'>
  readonly plan: { readonly request: Pick<ParsedRequest, 'model'> }
  readonly words: ComparedRequestTexts
}

/** A failure of an upstream, with its call, channel and key. */
export interface UpstreamFailure extends Pick<Failure, 'cause' | 'status' | 'upstreamMessage'> {
  readonly call: FailedCall
  readonly channel: Channel
  readonly key: UpstreamKey
}

/** What failed, as log lines name it: a channel, or what a feature depends on. */
type Failed = Readonly<Record<string, string>>

interface Window {
  readonly failed: Failed
  readonly message: string
  readonly cause: string
  readonly endsMs: number
  logged: number
  suppressed: number
}

/**
 * Warns about failed upstreams and what features depend on: at most five lines per minute for each of them and each
 * cause. At the end of the minute, the number of suppressed warnings is logged. `docs/operations.md: Logs`.
 */
export class FailureLog {
  readonly #log: Pick<Logger, 'warn' | 'isLevelEnabled'>
  /** Number of log lines in the current `WINDOW_MS`, by what failed and the cause. */
  readonly #windows = new Map<string, Window>()

  constructor(log: Pick<Logger, 'warn' | 'isLevelEnabled'>) {
    this.#log = log
  }

  /**
   * Logs a failure. If `MAX_LINES` of its kind were logged in the current minute, the failure is only
   * counted.
   */
  report(
    { call, channel, key, cause, status, upstreamMessage }: UpstreamFailure,
    reaction: FailureReaction,
    nowMs: number,
  ): void {
    if (!this.#log.isLevelEnabled('warn')) return
    if (!this.#mayLog({ channel: channel.name }, UPSTREAM_FAILED, cause, nowMs)) return
    const place = channel.keys.indexOf(key.value)
    this.#log.warn(
      {
        id: call.incoming.id,
        model: call.plan.request.model,
        channel: channel.name,
        key: place === -1 ? undefined : place + 1,
        status,
        cause: causeText(cause),
        said: storableMessage(upstreamMessage, call.words) || undefined,
        reaction,
      },
      UPSTREAM_FAILED,
    )
  }

  /**
   * Logs that what a feature depends on has failed for a call. If `MAX_LINES` of its kind were logged in the
   * current minute, this is only counted.
   */
  reportOther(failed: Failed, message: string, id: string, cause: string, nowMs: number): void {
    if (!this.#log.isLevelEnabled('warn') || !this.#mayLog(failed, message, cause, nowMs)) return
    this.#log.warn({ id, ...failed, cause }, message)
  }

  /**
   * Logs how many warnings were suppressed, for each cause whose minute is over. Must be called about once a
   * second.
   */
  tick(nowMs: number): void {
    for (const [name, { failed, message, cause, endsMs, suppressed: unreported }] of this.#windows) {
      if (endsMs > nowMs) continue
      this.#windows.delete(name)
      if (unreported === 0) continue
      this.#log.warn({ ...failed, cause: causeText(cause), suppressed: unreported }, message)
    }
  }

  /** Logs how many warnings were suppressed, for all causes. */
  close(): void {
    this.tick(Number.POSITIVE_INFINITY)
  }

  #mayLog(failed: Failed, message: string, cause: string, nowMs: number): boolean {
    const name = `${JSON.stringify(failed)}\0${cause}`
    let window = this.#windows.get(name)
    if (!window) {
      window = { failed, message, cause, endsMs: nowMs + WINDOW_MS, logged: 0, suppressed: 0 }
      this.#windows.set(name, window)
    }
    if (window.logged === MAX_LINES) {
      window.suppressed += 1
      return false
    }
    window.logged += 1
    return true
  }
}

const UPSTREAM_FAILED = 'upstream failed'

/** Descriptions of the operating system's error codes for log lines. */
const CAUSE_TEXTS = new Map([
  ['ECONNREFUSED', 'connection refused'],
  ['ECONNRESET', 'connection reset'],
  ['EPIPE', 'connection closed while the request was sent'],
  ['ETIMEDOUT', 'connection timed out'],
  ['EHOSTUNREACH', 'host unreachable'],
  ['ENETUNREACH', 'network unreachable'],
  ['ENOTFOUND', 'host name not found'],
  ['EAI_AGAIN', 'host name not resolved'],
  ['CERT_HAS_EXPIRED', 'certificate expired'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'certificate not trusted'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'certificate not trusted'],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'certificate not trusted'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'certificate not trusted'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'certificate of another host'],
])

function causeText(cause: string): string {
  const words = CAUSE_TEXTS.get(cause)
  return words === undefined ? cause : `${words} (${cause})`
}
