import type { UpstreamRequest } from '@sluice/http1'
import type { AttemptEntry, CallDelays } from '../domain/call-detail.ts'
import type { Failure } from './failure.ts'
import type { Target } from './request-stages.ts'

/** Maximum attempts that are recorded for one call. */
const MAX_ENTRIES = 50

/** An upstream that broke off in the middle of its response. */
export interface UpstreamCut {
  readonly cause: string
  /** The upstream's error message, redacted, if there was one. */
  readonly upstreamMessage: string | undefined
}

/** Attempts of one call, for its row in the usage log. */
export class AttemptLog {
  /** Start of the call by `performance.now()`, in milliseconds. */
  readonly #startedAt: number
  #failed: AttemptEntry[] | undefined
  #open: Target | undefined
  #openedMs = 0
  #firstMs: number | undefined
  #request: UpstreamRequest | undefined

  constructor(startedAt: number) {
    this.#startedAt = startedAt
  }

  /** Records that an attempt begins. */
  begin(target: Target): void {
    this.#open = target
    this.#openedMs = this.#elapsedMs
    this.#firstMs ??= this.#openedMs
    this.#request = undefined
  }

  /** Records the request of the attempt, which is now being sent. */
  onSent(request: UpstreamRequest): void {
    this.#request = request
  }

  /** Delays of the call so far. */
  get delays(): CallDelays {
    return { queuedMs: this.#firstMs ?? this.#elapsedMs, connectMs: this.#request?.openedInMs ?? 0 }
  }

  /** Records that the attempt delivered nothing. */
  failed({ status, cause }: Pick<Failure, 'status' | 'cause'>): void {
    if (!this.#open) return
    const entry = this.#entry(this.#open, status ?? null, cause)
    this.#open = undefined
    const failed = (this.#failed ??= [])
    if (failed.length < MAX_ENTRIES) failed.push(entry)
  }

  /**
   * The attempts as JSON, the successful one last; undefined if there was only one attempt and it was
   * complete. `cut`: the cause if the last one broke off.
   */
  text(cut: string | undefined): string | undefined {
    if (!this.#failed && cut === undefined) return undefined
    const last = this.#open ? [this.#entry(this.#open, 200, cut ?? null)] : []
    return JSON.stringify([...(this.#failed ?? []), ...last])
  }

  get #elapsedMs(): number {
    return Math.round(performance.now() - this.#startedAt)
  }

  #entry({ channel, key }: Target, status: number | null, cause: string | null): AttemptEntry {
    return {
      channel: channel.name,
      key_index: Math.max(0, channel.keys.indexOf(key.value)),
      started_ms: this.#openedMs,
      duration_ms: this.#elapsedMs - this.#openedMs,
      status,
      cause,
    }
  }
}
