import { type PermitRequest, type PermitResponse, type WindowBuckets, bucketsOf } from './peers.ts'
import { type UsageSample, SlidingWindow, type LimitDecision } from './sliding-window.ts'

/**
 * One node's part of a rate limit that several nodes share. It holds permits: units that the other nodes have
 * granted to it in advance, so that it can allow requests without asking. It also holds a snapshot of what
 * the other nodes have used. All times are in milliseconds on the node's monotonic clock.
 *
 * The node also counts its own use, so that it never allows more than the limit in any window, whatever Redis
 * answers.
 */
export class Permits {
  #max: number
  readonly windowMs: number
  readonly #buckets: WindowBuckets
  /** What this node itself has used of the limit within the window. */
  readonly #local = new SlidingWindow()
  /** What this node has used while it could not reach the other nodes, since their last response. */
  #isolated: SlidingWindow | undefined
  #stock = 0
  #validUntilMs = 0
  #bucket = 0
  #used = 0
  /** What this node has used without a permit, and not reported to the other nodes yet. */
  #added: UsageSample[] = []
  /** The report that was sent but not answered yet. */
  #inFlight: { readonly sentMs: number; readonly used: number; readonly added: UsageSample[] } | undefined
  #snapshot: WindowSnapshot | undefined
  #snapshotMs = Number.NEGATIVE_INFINITY
  #requestedMs = Number.NEGATIVE_INFINITY
  #lastUsedMs = Number.NEGATIVE_INFINITY
  #refusedUntilMs = Number.NEGATIVE_INFINITY
  #refetchMs = Number.NEGATIVE_INFINITY
  #usedSinceRequest = 0
  /** Generation of the shared store to which the last report was sent. */
  #generation: string | undefined

  constructor(max: number, windowMs: number) {
    this.#max = max
    this.windowMs = windowMs
    this.#buckets = bucketsOf(windowMs)
  }

  get max(): number {
    return this.#max
  }

  /** The current limit, which a change of the configuration may replace. */
  set max(max: number) {
    // A refusal of before says nothing about a limit that was raised.
    if (max > this.#max) this.#refusedUntilMs = Number.NEGATIVE_INFINITY
    this.#max = max
  }

  /**
   * Allows a request if there is a permit for it, or refuses it if the other nodes' last response shows that
   * the limit is reached. Undefined if the other nodes must be asked.
   */
  take(nowMs: number): LimitDecision | undefined {
    const local = this.#local.peek(nowMs, 1, this.max, this.windowMs)
    if (!local.allowed) return local
    if (this.#stock > 0 && nowMs < this.#validUntilMs) {
      this.#stock -= 1
      this.#used += 1
      this.#recordUse(nowMs, 1)
      return this.#verdict(nowMs, true)
    }
    return nowMs < this.#refusedUntilMs ? this.#verdict(nowMs, false) : undefined
  }

  /**
   * Checks a limit whose use needs no permits, if the snapshot of the other nodes' use is recent enough.
   * Undefined if the other nodes must be asked.
   */
  check(nowMs: number): LimitDecision | undefined {
    const isFresh = nowMs - this.#snapshotMs < Math.min(FRESH_MS, this.windowMs)
    return isFresh ? this.peek(nowMs) : undefined
  }

  /** Decides by the snapshot of what all nodes have used, however old it is, without taking anything. */
  peek(nowMs: number): LimitDecision {
    const local = this.#local.peek(nowMs, 1, this.max, this.windowMs)
    if (!local.allowed) return local
    return this.#verdict(nowMs, (this.#stock > 0 && nowMs < this.#validUntilMs) || this.#free(nowMs) > 0)
  }

  /** Counts an amount that was used without a permit. */
  add(nowMs: number, amount: number): void {
    this.#recordUse(nowMs, amount)
    this.#collect(nowMs, amount)
  }

  // Amounts that belong to the same time bucket are combined, and reported with the time of the last one. Those that are
  // older than the window are dropped, because it may take days until the other nodes can be reached.
  #collect(atMs: number, amount: number): void {
    const { widthMs } = this.#buckets
    const last = this.#added.at(-1)
    if (last !== undefined && Math.floor(last[0] / widthMs) === Math.floor(atMs / widthMs))
      this.#added[this.#added.length - 1] = [atMs, last[1] + amount]
    else this.#added.push([atMs, amount])
    while ((this.#added[0]?.[0] ?? atMs) <= atMs - this.windowMs) this.#added.shift()
  }

  /**
   * Allows a request while the other nodes cannot be asked, within this node's share of what was left of the
   * limit when they last answered.
   */
  takeIsolated(nowMs: number, nodes: number): LimitDecision {
    const verdict = this.peekIsolated(nowMs, nodes)
    if (!verdict.allowed) return verdict
    this.addIsolated(nowMs, 1)
    return { ...verdict, remaining: verdict.remaining - 1 }
  }

  /**
   * Allows a request while reports of other nodes may be missing, within this node's share of the whole
   * limit.
   */
  takeShare(nowMs: number, nodes: number): LimitDecision {
    const share = Math.max(1, Math.floor(this.max / nodes))
    const verdict = this.#local.peek(nowMs, 1, share, this.windowMs)
    if (!verdict.allowed) return verdict
    this.addIsolated(nowMs, 1)
    return { ...verdict, remaining: verdict.remaining - 1 }
  }

  /**
   * Whether a request would be allowed while the other nodes cannot be asked (`takeIsolated`); nothing is
   * taken. If the nodes count together at other times (`isCountedTogether`), `remaining` is what remains of
   * the whole limit by what is known, because an interruption is short; otherwise, of this node's share.
   */
  peekIsolated(nowMs: number, nodes: number, isCountedTogether = false): LimitDecision {
    const local = this.#local.peek(nowMs, 1, this.max, this.windowMs)
    if (!local.allowed) return local
    const used = this.#snapshot?.used(nowMs) ?? 0
    const share = Math.floor(Math.max(0, this.max - used) / nodes)
    // If the limit is lower than the number of nodes, each node allows one unit, so that no client is refused
    // forever.
    const max = used === 0 ? Math.max(1, share) : share
    const verdict = (this.#isolated ?? EMPTY_WINDOW).peek(nowMs, 1, max, this.windowMs)
    if (verdict.allowed && isCountedTogether) return this.#verdict(nowMs, true)
    if (verdict.allowed || verdict.waitMs > 0) return verdict
    return {
      ...verdict,
      waitMs: Math.max(1, this.#snapshot?.waitMs(nowMs, this.max, nodes) ?? this.windowMs),
    }
  }

  /** Counts an amount that was used while the other nodes cannot be asked. */
  addIsolated(nowMs: number, amount: number): void {
    this.#isolated ??= new SlidingWindow()
    this.#isolated.add(nowMs, amount, this.windowMs)
    this.add(nowMs, amount)
  }

  /** Whether it is time to send a report or to return permits, even if no call waits. */
  isDue(nowMs: number, generation: string | undefined): boolean {
    if (this.#inFlight) return false
    const isUnreported = this.#used > 0 || this.#hasAdded(nowMs)
    if (isUnreported && this.max <= MAX_REPORTED_AT_ONCE) return true
    const reportMs = Math.min(REPORT_MS, Math.max(5, this.#buckets.widthMs / 2))
    if (nowMs - this.#requestedMs < reportMs) return false
    if (isUnreported) return true
    if (this.#stock > 0) return nowMs >= this.#validUntilMs || this.#isIdle(nowMs)
    return generation !== this.#generation && this.#generation !== undefined && !this.isIdle(nowMs)
  }

  /** Whether the shared store must still contain something that this node has reported as used. */
  isReported(nowMs: number): boolean {
    return (this.#snapshot?.version(nowMs) ?? 0) > 0 && this.#local.sum(nowMs, this.windowMs) > 0
  }

  /** Whether it is time to check that the shared store still contains what this node has reported. */
  isUnverified(nowMs: number): boolean {
    return !this.#inFlight && nowMs - this.#requestedMs >= VERIFY_MS
  }

  /** Whether more permits should be fetched before they run out. */
  isLow(nowMs: number): boolean {
    return !this.#inFlight && nowMs >= this.#refetchMs && this.#stock * 2 < this.#targetStock(nowMs)
  }

  /** Whether the snapshot of what all nodes have used is so old that it should be refreshed. */
  isStale(nowMs: number): boolean {
    return !this.#inFlight && nowMs - this.#snapshotMs > STOCK_MS
  }

  /**
   * Whether this object can be discarded without losing any count. Permits, and what is not reported yet, expire with the
   * windows.
   */
  isIdle(nowMs: number): boolean {
    return (
      !this.#inFlight &&
      this.#local.sum(nowMs, this.windowMs) === 0 &&
      (this.#snapshot?.used(nowMs) ?? 0) === 0
    )
  }

  /** Whether anything must still be reported or returned to the other nodes. */
  hasUnreported(nowMs: number): boolean {
    return this.#inFlight !== undefined || this.#stock + this.#used > 0 || this.#hasAdded(nowMs)
  }

  /**
   * Builds the next request, for `need` waiting calls. Afterwards `applyResponse` or `failRequest` must be
   * called before the next one. If the store's generation has changed, the request reports everything used in
   * the current window.
   */
  buildRequest(nowMs: number, need: number, generation: string | undefined): PermitRequest {
    if (this.#generation !== undefined && generation !== this.#generation) this.#reportAll(nowMs)
    this.#generation = generation
    const isReturned = nowMs >= this.#validUntilMs || (need === 0 && this.#isIdle(nowMs))
    const kept = isReturned ? 0 : this.#stock
    // A request that reports use without permits fetches no spare permits: other nodes may still have such
    // use to report.
    const fetches = need > 0 || (!this.#hasAdded(nowMs) && !this.#isIdle(nowMs))
    const want = fetches ? Math.max(0, this.#targetStock(nowMs) - kept) : 0
    const request = {
      max: this.max,
      windowMs: this.windowMs,
      known: this.#snapshot?.version(nowMs) ?? 0,
      bucket: this.#bucket,
      used: this.#used,
      returned: this.#stock - kept,
      kept,
      added: this.#added
        .filter(([atMs]) => nowMs - atMs < this.windowMs)
        .map(([atMs, amount]) => [Math.floor(nowMs - atMs), amount] as const),
      need,
      want: need + want,
    }
    this.#inFlight = { sentMs: nowMs, used: this.#used, added: this.#added }
    this.#requestedMs = nowMs
    this.#stock = kept
    this.#used = 0
    this.#added = []
    this.#usedSinceRequest = 0
    return request
  }

  /** Applies the response to the last request. */
  applyResponse(nowMs: number, request: PermitRequest, response: PermitResponse): void {
    const sentMs = this.#inFlight?.sentMs ?? nowMs
    this.#inFlight = undefined
    this.#isolated = undefined
    const { widthMs } = this.#buckets
    this.#bucket = response.bucket
    this.#stock += response.granted
    // The validity begins when the request was sent, so that no permit is used after the end of its time
    // bucket.
    this.#validUntilMs = sentMs + response.bucket * widthMs - response.nowMs
    this.#snapshot = snapshotFrom(response, nowMs, widthMs, this.windowMs)
    this.#snapshotMs = nowMs
    if (response.granted === 0) this.#refetchMs = nowMs + REPORT_MS
    if (response.granted >= request.need) return
    const { min, max } = RETRY_MS
    const retryMs = Math.min(max, this.windowMs / 64, this.#snapshot.waitMs(nowMs, this.max, 1))
    this.#refusedUntilMs = nowMs + Math.max(min, retryMs)
  }

  /**
   * Must be called if no response came, so that it is unknown whether the request was applied. All permits
   * then count as used, and everything else is reported again.
   */
  failRequest(): void {
    if (!this.#inFlight) return
    const later = this.#added
    this.#added = this.#inFlight.added
    for (const [atMs, amount] of later) this.#collect(atMs, amount)
    this.#inFlight = undefined
    this.#stock = 0
    this.#used = 0
  }

  /** Makes the next request return all permits. */
  returnAll(): void {
    this.#validUntilMs = Number.NEGATIVE_INFINITY
    this.#lastUsedMs = Number.NEGATIVE_INFINITY
  }

  #reportAll(nowMs: number): void {
    this.#stock = 0
    this.#used = 0
    this.#added = this.#local.moments(nowMs, this.windowMs)
    this.#snapshot = undefined
  }

  #recordUse(nowMs: number, amount: number): void {
    this.#local.add(nowMs, amount, this.windowMs)
    this.#lastUsedMs = nowMs
    this.#usedSinceRequest += amount
  }

  #targetStock(nowMs: number): number {
    const rate = this.#usedSinceRequest / Math.max(20, nowMs - this.#requestedMs)
    return 1 + Math.ceil(rate * Math.min(STOCK_MS, this.windowMs / 16))
  }

  #isIdle(nowMs: number): boolean {
    const isScarce = this.#free(nowMs) < this.max * SCARCE_SHARE
    const idleMs = Math.min(IDLE_MS, this.windowMs * IDLE_SHARE)
    return nowMs - this.#lastUsedMs >= (isScarce ? Math.min(idleMs, this.#buckets.widthMs, 250) : idleMs)
  }

  /**
   * Units of the limit that are free by the last snapshot. Permits that a node holds do not count as free.
   */
  #free(nowMs: number): number {
    return this.max - (this.#snapshot?.used(nowMs) ?? 0) - sumOf(this.#added, nowMs - this.windowMs)
  }

  #hasAdded(nowMs: number): boolean {
    return (this.#added.at(-1)?.[0] ?? Number.NEGATIVE_INFINITY) > nowMs - this.windowMs
  }

  /**
   * Units of the limit that no node has used by the last snapshot. Permits that a node holds do count.
   */
  #unused(nowMs: number): number {
    const { used, added } = this.#inFlight ?? { used: 0, added: [] }
    const startMs = nowMs - this.windowMs
    const unreported = this.#used + used + sumOf(this.#added, startMs) + sumOf(added, startMs)
    return this.max - (this.#snapshot?.used(nowMs, false) ?? 0) - unreported
  }

  #verdict(nowMs: number, allowed: boolean): LimitDecision {
    const local = this.#local.peek(nowMs, 1, this.max, this.windowMs)
    const remaining = Math.max(0, Math.min(local.remaining, this.#unused(nowMs)))
    const resetMs = Math.min(this.windowMs, Math.max(local.resetMs, this.#snapshot?.resetMs(nowMs) ?? 0))
    const waitMs = allowed ? 0 : Math.max(1, this.#snapshot?.waitMs(nowMs, this.max, 1) ?? 1)
    return { allowed, remaining, resetMs, waitMs }
  }
}

const EMPTY_WINDOW = new SlidingWindow()

/** Sum of the amounts that were used after this time. */
function sumOf(samples: readonly UsageSample[], afterMs: number): number {
  return samples.reduce((sum, [atMs, amount]) => (atMs > afterMs ? sum + amount : sum), 0)
}

/**
 * Unused permits are returned after this many milliseconds, or after `IDLE_SHARE` of the window if that is
 * shorter. If less than `SCARCE_SHARE` of the limit is free, they are returned sooner.
 */
const IDLE_MS = 5_000
const IDLE_SHARE = 1 / 8
const SCARCE_SHARE = 1 / 4
/** Maximum milliseconds until a node reports what it has used. */
const REPORT_MS = 100
/**
 * The use of a limit of at most so many units is reported at once, so that every node states what remains
 * (docs/api.md: Rate limits); there can be few reports.
 */
const MAX_REPORTED_AT_ONCE = 1_000
/** Milliseconds for which a node's permits should last at its recent rate of use. */
const STOCK_MS = 200
/**
 * Minimum and maximum milliseconds for which a node refuses requests without asking the other nodes again.
 */
const RETRY_MS = { min: 5, max: 1_000 }
/** Milliseconds after which a node checks that the shared window still contains what it has reported. */
const VERIFY_MS = 500
/** Maximum age in milliseconds of a snapshot of the other nodes' use that decides without asking them. */
const FRESH_MS = 1_000

/** An amount that was used or is held as permits, and when it expires. */
interface Expiry {
  readonly atMs: number
  readonly amount: number
  /** Whether these are permits that a node has not reported as used. */
  readonly isHeld: boolean
}

/**
 * What all nodes have used at one moment, and when it expires. Times are in milliseconds on this node's
 * clock.
 */
class WindowSnapshot {
  /** Times at which amounts expire, in ascending order. */
  readonly #expiries: readonly Expiry[]

  readonly #version: number

  constructor(expiries: readonly Expiry[], version = 0) {
    this.#expiries = expiries
    this.#version = version
  }

  /**
   * The window's version; if the store later has a lower one, it has lost data. 0 once everything has
   * expired, because the window may then be missing.
   */
  version(nowMs: number): number {
    return this.used(nowMs) > 0 ? this.#version : 0
  }

  /** Total amount that all nodes have used and, with `includesHeld`, hold, and that has not expired yet. */
  used(nowMs: number, includesHeld = true): number {
    let sum = 0
    for (const { atMs, amount, isHeld } of this.#expiries)
      if (atMs > nowMs && (includesHeld || !isHeld)) sum += amount
    return sum
  }

  /** Milliseconds until `amount` units are free under a limit of `max`; 0 if they are free now. */
  waitMs(nowMs: number, max: number, amount: number): number {
    let missing = this.used(nowMs) + amount - max
    if (missing <= 0) return 0
    for (const { atMs, amount: expired } of this.#expiries) {
      if (atMs <= nowMs) continue
      missing -= expired
      if (missing <= 0) return Math.ceil(atMs - nowMs)
    }
    return 0
  }

  /** Milliseconds until all used amounts have expired. */
  resetMs(nowMs: number): number {
    const last = this.#expiries.findLast(({ isHeld }) => !isHeld)
    return Math.max(0, Math.ceil((last?.atMs ?? nowMs) - nowMs))
  }
}

/** Converts the store's response to a snapshot; `nowMs` is when it arrived. */
function snapshotFrom(
  response: PermitResponse,
  nowMs: number,
  widthMs: number,
  windowMs: number,
): WindowSnapshot {
  const aheadMs = nowMs - response.nowMs
  const current = Math.ceil(response.nowMs / widthMs)
  return new WindowSnapshot(
    response.amounts.map(([bucket, amount]) => ({
      atMs: bucket * widthMs + windowMs + aheadMs,
      amount,
      isHeld: bucket > current,
    })),
    response.version,
  )
}
