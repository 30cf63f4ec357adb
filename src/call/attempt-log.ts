import type { UpstreamRequest } from '@sluice/http1'
import type { AttemptEntry } from '../domain/call-detail.ts'
import type { CallDelays } from '../domain/price.ts'
import type { Failure } from './failure.ts'
import { type ComparedRequestTexts, storableMessage } from './provider-messages.ts'
import type { AttemptTarget } from './request-stages.ts'
import { serverAddress } from './server-address.ts'
import type { TracedAttempt } from '../telemetry/telemetry.ts'

/** Maximum attempts that are recorded for one call. */
const MAX_ENTRIES = 50

/** How an upstream broke off in the middle of its response. */
export interface UpstreamInterruption {
  readonly cause: string
  /** The upstream's error message, redacted, if there was one. */
  readonly upstreamMessage: string | undefined
  /** Whether it counts for the health of the channel. */
  readonly isOfChannel: boolean
  /** What the upstream's error means; undefined if the upstream reported none. */
  readonly failure?: Failure
}

/** An attempt for the usage log, with its target and the upstream's error message. */
interface LoggedAttempt {
  readonly entry: AttemptEntry
  readonly said: string | undefined
  readonly target: AttemptTarget
}

/** Attempts of one call, for its row in the usage log. */
export class AttemptLog {
  /** Start of the call by `performance.now()`, in milliseconds. */
  readonly #startedAt: number
  #failed: LoggedAttempt[] | undefined
  #last: Failure | undefined
  #open: AttemptTarget | undefined
  #openedMs = 0
  #firstMs: number | undefined
  #request: UpstreamRequest | undefined

  constructor(startedAt: number) {
    this.#startedAt = startedAt
  }

  /** Records that an attempt begins now. */
  begin(target: AttemptTarget, nowMs: number): void {
    this.#open = target
    this.#openedMs = this.#elapsedMs(nowMs)
    this.#firstMs ??= this.#openedMs
    this.#request = undefined
  }

  /** Records the request of the attempt, which is now being sent. */
  onSent(request: UpstreamRequest): void {
    this.#request = request
  }

  /**
   * Delays of the call before its upstream started working, in milliseconds: until the first attempt began,
   * and for connecting.
   */
  get delays(): CallDelays {
    return { queuedMs: this.#firstMs ?? this.#elapsedMs(), connectMs: this.#request?.connectDurationMs ?? 0 }
  }

  /** The last attempt that delivered nothing; undefined if there was none. */
  get lastFailure(): Failure | undefined {
    return this.#last
  }

  /** Records that the attempt delivered nothing. */
  failed(failure: Failure): void {
    if (!this.#open) return
    const { status, cause, upstreamMessage } = failure
    const target = this.#open
    const entry = this.#entry(target, status ?? null, cause)
    this.#open = undefined
    this.#last = failure
    const failed = (this.#failed ??= [])
    if (failed.length < MAX_ENTRIES) failed.push({ entry, said: upstreamMessage, target })
  }

  /**
   * The attempts as JSON, the successful one last; undefined if there was only one attempt and it was
   * complete. `cut`: how the last attempt broke off, if it did. `words`: texts of the request, which are
   * removed from the providers' error messages before these are stored; undefined if messages are not stored.
   */
  text(cut: UpstreamInterruption | undefined, words: ComparedRequestTexts | undefined): string | undefined {
    if (!this.#failed && cut === undefined) return undefined
    const entries = this.#all(cut).map(({ entry, said }) => {
      const message = words ? storableMessage(said, words) : ''
      return message === '' ? entry : { ...entry, message }
    })
    return JSON.stringify(entries satisfies AttemptEntry[])
  }

  /**
   * The attempts for telemetry, the successful one last. `cut`: how the last attempt broke off, if it did.
   */
  traced(cut: UpstreamInterruption | undefined): TracedAttempt[] {
    return this.#all(cut).map(({ entry, target }) => ({
      ...entry,
      server: serverAddress(target.channel),
    }))
  }

  #all(cut: UpstreamInterruption | undefined): readonly LoggedAttempt[] {
    const failed = this.#failed ?? []
    if (!this.#open) return failed
    const target = this.#open
    const entry = this.#entry(target, 200, cut?.cause ?? null)
    return [...failed, { entry, said: cut?.upstreamMessage, target }]
  }

  #elapsedMs(nowMs = performance.now()): number {
    return Math.round(nowMs - this.#startedAt)
  }

  #entry({ channel, key }: AttemptTarget, status: number | null, cause: string | null): AttemptEntry {
    return {
      channel: channel.name,
      key_index: Math.max(0, channel.keys.indexOf(key.value)),
      started_ms: this.#openedMs,
      duration_ms: this.#elapsedMs() - this.#openedMs,
      status,
      cause,
    }
  }
}
