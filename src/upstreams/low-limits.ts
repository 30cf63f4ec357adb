import type { Channel } from '../domain/records/channel.ts'
import type { LowestRemaining } from './stated-limits.ts'

/**
 * Share from 0 to 1. A channel's rate limit for a model counts as low if less than this is left of each of
 * its keys.
 */
const LOW_SHARE = 0.05
/**
 * Share from 0 to 1. A rate limit that is low stays low until one of the channel's keys has more than this
 * left.
 */
const ENOUGH_SHARE = 0.1
/** Milliseconds after which a rate limit that stays low is reported again. */
const REPEAT_MS = 15_000
/**
 * Maximum milliseconds between two reports. After a longer time, collected changes are discarded, and limits
 * that are low count as new.
 */
const FORGOTTEN_MS = 60_000
/** Maximum number of low limits that are tracked, and of changes that wait to be reported. */
const MAX_LOW = 1_000

/** The keys of a channel, and the upstream's name of a model. */
export interface ModelKeys extends Pick<Channel, 'name' | 'keys'> {
  readonly model: string
}

/** What has changed about a channel's rate limit for a model since the last report. */
export interface LowLimitChange {
  readonly channel: string
  readonly model: string
  /** Whether a limit that was low at the last report was not low for some time since. */
  readonly hadEnough: boolean
  /** What is left of the limit for the key that has the most left; undefined if the limit was not low. */
  readonly low: LowestRemaining | undefined
  /** Whether the limit became low since the last report; false if it was low before. */
  readonly isNew: boolean
  /** Whether a limit that became low since the last report is not low any more. */
  readonly hasEnough: boolean
}

interface LowLimit {
  readonly of: ModelKeys
  /** When the low limit was last reported, in milliseconds of a monotonic clock. */
  reportedMs: number
}

/**
 * Watches for channels whose keys all have less than 5 % left of a provider's limit for a model. The limit
 * counts as low until a key has more than 10 % again, or the limit is reset. `docs/operations.md: Alerts`.
 */
export class LowLimits {
  readonly #low = new Map<string, LowLimit>()
  readonly #news = new Map<string, { -readonly [Of in keyof LowLimitChange]: LowLimitChange[Of] }>()
  #dueMs = Number.NEGATIVE_INFINITY
  readonly #leftOf: (of: ModelKeys) => readonly (LowestRemaining | undefined)[]

  /**
   * `leftOf` returns, for each key, what is left of its limits for a model; undefined for a key whose limits
   * are unknown.
   */
  constructor(leftOf: (of: ModelKeys) => readonly (LowestRemaining | undefined)[]) {
    this.#leftOf = leftOf
  }

  /**
   * Notes that a provider has stated which share of a key's limit is left. If it was stated to another node
   * (`isOwn` is false), only that node reports the change, so that no change is reported twice.
   */
  noted(of: ModelKeys, share: number, isOwn = true): void {
    if (share >= LOW_SHARE && this.#low.size === 0) return
    const name = `${of.name}\0${of.model}`
    if (this.#low.has(name)) {
      if (share > ENOUGH_SHARE) this.#end(name, of, isOwn)
      return
    }
    const most = share < LOW_SHARE && this.#low.size < MAX_LOW && this.#mostLeft(of)
    if (!most || most.share >= LOW_SHARE) return
    if (isOwn) this.#begin(name, of, most)
    else this.#low.set(name, { of, reportedMs: this.#dueMs })
  }

  /** Returns the changes to be reported now. `nowMs` is in milliseconds of a monotonic clock. */
  due(nowMs: number): readonly LowLimitChange[] {
    if (nowMs - this.#dueMs > FORGOTTEN_MS) {
      this.#news.clear()
      this.forget()
    }
    this.#dueMs = nowMs
    for (const [name, low] of this.#low) {
      const most = this.#mostLeft(low.of)
      if (!most || most.share > ENOUGH_SHARE) this.#end(name, low.of)
      else if (nowMs - low.reportedMs >= REPEAT_MS) {
        const news = this.#newsOf(name, low.of)
        if (news) news.low ??= most
        low.reportedMs = nowMs
      }
    }
    const due = [...this.#news.values()]
    this.#news.clear()
    return due
  }

  /** Causes all low limits to be reported again as new, because a report could not be stored. */
  forget(): void {
    for (const [name, { of }] of this.#low) {
      const most = this.#mostLeft(of)
      if (most) this.#begin(name, of, most)
    }
  }

  #begin(name: string, of: ModelKeys, most: LowestRemaining): void {
    this.#low.set(name, { of, reportedMs: Number.NEGATIVE_INFINITY })
    const news = this.#newsOf(name, of)
    if (!news) return
    news.low ??= most
    news.isNew = true
    news.hasEnough = false
  }

  #end(name: string, of: ModelKeys, isOwn = true): void {
    this.#low.delete(name)
    if (!isOwn) return
    const news = this.#newsOf(name, of)
    if (news?.low) news.hasEnough = true
    else if (news) news.hadEnough = true
  }

  #newsOf(name: string, { name: channel, model }: ModelKeys) {
    const known = this.#news.get(name)
    if (known || this.#news.size >= MAX_LOW) return known
    const news = { channel, model, hadEnough: false, low: undefined, isNew: false, hasEnough: false }
    this.#news.set(name, news)
    return news
  }

  /**
   * What is left for the key that has the most left; undefined if the limits of one of the keys are unknown.
   */
  #mostLeft(of: ModelKeys): LowestRemaining | undefined {
    let most: LowestRemaining | undefined
    for (const left of this.#leftOf(of)) {
      if (!left) return undefined
      if (!most || left.share > most.share) most = left
    }
    return most
  }
}
