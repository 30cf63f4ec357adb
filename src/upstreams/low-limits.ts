import type { Channel } from '../domain/records/channel.ts'
import type { LeastLeft } from './stated-limits.ts'

/** A channel is low on a model when less than this share of a limit is left of each of its keys. */
const LOW_SHARE = 0.05
/** It is low until one of its keys has more than this share. */
const ENOUGH_SHARE = 0.1
/** Interval at which a channel that stays low is reported again. */
const REPEAT_MS = 15_000
/** Changes are only collected while they are reported, at most this long after each other. */
const FORGOTTEN_MS = 60_000
/** Maximum number of channels and models that are low at a time, and of those that wait to be reported. */
const MAX_LOW = 1_000

/** The keys of a channel, and an upstream model. */
export interface ModelKeys extends Pick<Channel, 'name' | 'keys'> {
  readonly model: string
}

/** What changed at a channel and a model since the last report. */
export interface LowLimitNews {
  readonly channel: string
  readonly model: string
  /** Whether a key had enough before the channel was low. */
  readonly hadEnough: boolean
  /** What the key with the most left has, if the channel was low. */
  readonly low: LeastLeft | undefined
  /** Whether it became low; false if it is still low since an earlier report. */
  readonly isNew: boolean
  /** Whether a key has had enough since the channel was low. */
  readonly hasEnough: boolean
}

interface Low {
  readonly of: ModelKeys
  /** On a monotonic clock. */
  reportedMs: number
}

/**
 * Watches for channels of which all keys have less than 5 % left of a model. A channel is low until one of its keys
 * has more than 10 % again, or its limit is reset. `docs/operations.md: Alerts`.
 */
export class LowLimits {
  readonly #low = new Map<string, Low>()
  readonly #news = new Map<string, { -readonly [Of in keyof LowLimitNews]: LowLimitNews[Of] }>()
  #dueMs = Number.NEGATIVE_INFINITY
  readonly #leftOf: (of: ModelKeys) => readonly (LeastLeft | undefined)[]

  /** `leftOf` returns what each key has left of a model; undefined for a key of which nothing is known. */
  constructor(leftOf: (of: ModelKeys) => readonly (LeastLeft | undefined)[]) {
    this.#leftOf = leftOf
  }

  /**
   * A provider has stated that one of the keys has this share left. What it stated to another node (`isOwn` is
   * false) changes what is low, and is reported by that node alone, so that no change is reported twice.
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

  /** What is to be reported now; `nowMs` is on a monotonic clock. */
  due(nowMs: number): readonly LowLimitNews[] {
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

  /** Makes everything that is low due again as if it were new, because a report could not be stored. */
  forget(): void {
    for (const [name, { of }] of this.#low) {
      const most = this.#mostLeft(of)
      if (most) this.#begin(name, of, most)
    }
  }

  #begin(name: string, of: ModelKeys, most: LeastLeft): void {
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

  /** What the key with the most left has; undefined if nothing is known of one of the keys. */
  #mostLeft(of: ModelKeys): LeastLeft | undefined {
    let most: LeastLeft | undefined
    for (const left of this.#leftOf(of)) {
      if (!left) return undefined
      if (!most || left.share > most.share) most = left
    }
    return most
  }
}
