import { OwnedEntries } from '../../domain/owned-entries.ts'
import { CACHE_LIFETIMES_MS } from './affinity.ts'

/** The facts of a call with which the session's next call is compared. They contain no text of the prompt. */
export interface PreviousCall {
  /** Start of the call, in Unix milliseconds. */
  readonly atMs: number
  readonly channel: string
  /** Number of the channel and its key, from `numberOfChannelKey`. */
  readonly place: number
  /** The upstream's name of the model, with ` fast` if it was served fast. */
  readonly model: string
  /**
   * Short digests of parts of the request; empty if nothing was cached. `messages` covers the first `turns`
   * turns.
   */
  readonly tools: string
  readonly system: string
  readonly messages: string
  /** Number of turns of the conversation; -1 if the request does not contain all of them. */
  readonly turns: number
  /** Index in `CACHE_LIFETIMES_MS` of the longest lifetime that the session has written to a cache. */
  readonly longest: number
  /** Tokens that the call read from or wrote to caches, by index of the lifetime. */
  readonly cached: readonly number[]
  /** The provider's id of the answer, if the channel has `cache_diagnostics`; otherwise empty. */
  readonly answerId: string
  /** Whether this is certainly the session's last call: no other node can have served a later one unseen. */
  readonly isSure: boolean
}

/** The last call of each session, by the session's name in the usage log. */
export interface PreviousCalls {
  /** Whether the calls of all nodes are remembered here. */
  readonly isComplete: boolean
  find(userId: number, session: string): PreviousCall | undefined | Promise<PreviousCall | undefined>
  /**
   * `most`: maximum number of sessions; beyond it, the session remembered longest ago is forgotten of a user
   * with more than a fair share.
   */
  remember(userId: number, session: string, call: PreviousCall, most: number): void
  close(): Promise<void>
}

/** Previous calls in the memory of this process. They are forgotten once their caches have expired. */
export class LocalPreviousCalls implements PreviousCalls {
  readonly #calls = new OwnedEntries<number, PreviousCall>()
  readonly #isAlone: () => boolean

  /** `isAlone`: whether no other node serves calls of the same users. */
  constructor(isAlone: () => boolean = () => true) {
    this.#isAlone = isAlone
  }

  get isComplete(): boolean {
    return this.#isAlone()
  }

  /** Number of sessions whose last call is remembered. */
  get size(): number {
    return this.#calls.size
  }

  find(userId: number, session: string): PreviousCall | undefined {
    return this.#calls.get(userId, session)
  }

  remember(userId: number, session: string, call: PreviousCall, most: number): void {
    this.#forgetExpired(userId, call.atMs)
    const next = this.#calls.nextOwner()
    if (next !== undefined) this.#forgetExpired(next, call.atMs)
    this.#calls.set(userId, session, call, most)
  }

  #forgetExpired(userId: number, nowMs: number): void {
    const oldest = this.#calls.oldestOf(userId)
    if (oldest && oldest.atMs + (CACHE_LIFETIMES_MS[oldest.longest] ?? 0) < nowMs)
      this.#calls.removeOldest(userId)
  }

  async close(): Promise<void> {}
}
