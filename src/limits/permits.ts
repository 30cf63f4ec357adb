import { type ShareResponse, type ShareRequest, type Slots, slotsOf } from './share-messages.ts'
import { type WindowSnapshot, snapshotFrom } from './window-snapshot.ts'
import { type Moment, SlidingWindow, type Verdict } from './sliding-window.ts'

/**
 * How long permits lie at hand for nobody before they are given back, while there are many and while there
 * are few.
 */
const IDLE_MS = 5_000
const IDLE_SHARE = 1 / 8
const FEW = 1 / 4
/** How soon what was used is told. */
const TELL_MS = 100
/** For how long to come permits are wished to be at hand, by how many were used of late. */
const COMFORT_MS = 200
/** How long a refusal holds before the others are asked again. */
const ASK_AGAIN_MS = { least: 5, most: 1_000 }
/** How long what the others have used is good enough to go by. */
const FRESH_MS = 1_000

/**
 * What one node has of a limit that several share: permits at hand, which it may give out without asking, and
 * what it knows of the others. All times are of the node's own clock, in milliseconds; that clock never goes
 * back.
 *
 * Whatever it is told, it lets no more through than the limit in any window: that much it can count by
 * itself.
 */
export class Permits {
  /** The limit as it is now; it may change. */
  max: number
  readonly windowMs: number
  readonly #slots: Slots
  /** All that this node let through. */
  readonly #own = new SlidingWindow()
  /** What of it was let through without the others, since they were heard of last. */
  #alone: SlidingWindow | undefined
  #left = 0
  #untilMs = 0
  #slot = 0
  #used = 0
  /** What was let through without a permit, and not told yet. */
  #added: readonly Moment[] = []
  /** What is being told. */
  #told: { readonly sentMs: number; readonly added: readonly Moment[] } | undefined
  #known: WindowSnapshot | undefined
  #heardMs = Number.NEGATIVE_INFINITY
  #askedMs = Number.NEGATIVE_INFINITY
  #usedMs = Number.NEGATIVE_INFINITY
  #refusedUntilMs = Number.NEGATIVE_INFINITY
  #fetchAgainMs = Number.NEGATIVE_INFINITY
  #sinceAsked = 0
  /** Which memory of the others it belongs to. */
  #memory: string | undefined

  constructor(most: number, windowMs: number) {
    this.max = most
    this.windowMs = windowMs
    this.#slots = slotsOf(windowMs)
  }

  /** Takes one of those at hand, or refuses by what is known; undefined where the others have to be asked. */
  take(nowMs: number): Verdict | undefined {
    const own = this.#own.peek(nowMs, 1, this.max, this.windowMs)
    if (!own.allowed) return own
    if (this.#left > 0 && nowMs < this.#untilMs) {
      this.#left -= 1
      this.#used += 1
      this.#use(nowMs, 1)
      return this.#verdict(nowMs, true)
    }
    return nowMs < this.#refusedUntilMs ? this.#verdict(nowMs, false) : undefined
  }

  /**
   * Whether any is left of what needs no permit, by what was heard of late; undefined where the others have
   * to be asked.
   */
  check(nowMs: number): Verdict | undefined {
    const isFresh = nowMs - this.#heardMs < Math.min(FRESH_MS, this.windowMs)
    return isFresh ? this.peek(nowMs) : undefined
  }

  /** By what is known, however old it is. */
  peek(nowMs: number): Verdict {
    const own = this.#own.peek(nowMs, 1, this.max, this.windowMs)
    if (!own.allowed) return own
    return this.#verdict(nowMs, (this.#left > 0 && nowMs < this.#untilMs) || this.#free(nowMs) > 0)
  }

  /** Takes note of what was used without a permit. */
  add(nowMs: number, amount: number): void {
    this.#use(nowMs, amount)
    const last = this.#added.at(-1)
    const { widthMs } = this.#slots
    // What came in one slot's length is told as if all had come with the last of it.
    const isNear = last !== undefined && Math.floor(last[0] / widthMs) === Math.floor(nowMs / widthMs)
    this.#added = isNear
      ? [...this.#added.slice(0, -1), [nowMs, last[1] + amount]]
      : [...this.#added, [nowMs, amount]]
  }

  /** While the others cannot be heard: within this node's share of what they have left. */
  takeIsolated(nowMs: number, nodes: number): Verdict {
    const verdict = this.peekIsolated(nowMs, nodes)
    if (!verdict.allowed) return verdict
    this.addIsolated(nowMs, 1)
    return { ...verdict, remaining: verdict.remaining - 1 }
  }

  /**
   * While the others may still have much to tell: within this node's share of the limit, all that it let
   * through counted.
   */
  takeShare(nowMs: number, nodes: number): Verdict {
    const share = Math.max(1, Math.floor(this.max / nodes))
    const verdict = this.#own.peek(nowMs, 1, share, this.windowMs)
    if (!verdict.allowed) return verdict
    this.addIsolated(nowMs, 1)
    return { ...verdict, remaining: verdict.remaining - 1 }
  }

  /** The same without taking it. */
  peekIsolated(nowMs: number, nodes: number): Verdict {
    const own = this.#own.peek(nowMs, 1, this.max, this.windowMs)
    if (!own.allowed) return own
    const used = this.#known?.used(nowMs) ?? 0
    const share = Math.floor(Math.max(0, this.max - used) / nodes)
    // A limit below the number of nodes is one for each: nobody is refused for ever.
    const most = used === 0 ? Math.max(1, share) : share
    const verdict = (this.#alone ?? NOTHING_USED).peek(nowMs, 1, most, this.windowMs)
    if (verdict.allowed || verdict.waitMs > 0) return verdict
    return { ...verdict, waitMs: Math.max(1, this.#known?.waitMs(nowMs, this.max, nodes) ?? this.windowMs) }
  }

  /** Takes note of what was used while the others could not be heard. */
  addIsolated(nowMs: number, amount: number): void {
    this.#alone ??= new SlidingWindow()
    this.#alone.add(nowMs, amount, this.windowMs)
    this.add(nowMs, amount)
  }

  /** Whether it is time to tell, to fetch or to give back, with nobody waiting. */
  isDue(nowMs: number, memory: string | undefined): boolean {
    if (this.#told) return false
    const tellMs = Math.min(TELL_MS, Math.max(5, this.#slots.widthMs / 2))
    if (nowMs - this.#askedMs < tellMs) return false
    if (this.#used + this.#added.length > 0) return true
    if (this.#left > 0) return nowMs >= this.#untilMs || this.#isIdle(nowMs)
    return memory !== this.#memory && this.#memory !== undefined && !this.isIdle(nowMs)
  }

  /** Whether so few are at hand that more should be fetched before they are gone. */
  isLow(nowMs: number): boolean {
    return !this.#told && nowMs >= this.#fetchAgainMs && this.#left * 2 < this.#comfort(nowMs)
  }

  /** Whether what was heard of the others grows old. */
  isStale(nowMs: number): boolean {
    return !this.#told && nowMs - this.#heardMs > COMFORT_MS
  }

  /** Whether nothing would be lost with it. */
  isIdle(nowMs: number): boolean {
    return (
      !this.#told &&
      this.#left + this.#used + this.#added.length === 0 &&
      this.#own.sum(nowMs, this.windowMs) === 0 &&
      (this.#known?.used(nowMs) ?? 0) === 0
    )
  }

  /** Whether there is anything that the others are to hear sooner or later. */
  get hasUnreported(): boolean {
    return this.#told !== undefined || this.#left + this.#used + this.#added.length > 0
  }

  /**
   * What to ask, with so many waiting. It is answered, or unanswered, before anything else is asked. Where
   * the others have lost their memory they are told all that this node let through.
   */
  buildRequest(nowMs: number, need: number, memory: string | undefined): ShareRequest {
    if (this.#memory !== undefined && memory !== this.#memory) this.#tellAnew(nowMs)
    this.#memory = memory
    const isGivenBack = nowMs >= this.#untilMs || (need === 0 && this.#isIdle(nowMs))
    const kept = isGivenBack ? 0 : this.#left
    // What was used alone is told before more is fetched: the others may have as much to tell.
    const fetches = need > 0 || (this.#added.length === 0 && !this.#isIdle(nowMs))
    const want = fetches ? Math.max(0, this.#comfort(nowMs) - kept) : 0
    const question = {
      max: this.max,
      windowMs: this.windowMs,
      slot: this.#slot,
      used: this.#used,
      returned: this.#left - kept,
      kept,
      added: this.#added
        .filter(([atMs]) => nowMs - atMs < this.windowMs)
        .map(([atMs, amount]) => [Math.floor(nowMs - atMs), amount] as const),
      need,
      want: need + want,
    }
    this.#told = { sentMs: nowMs, added: this.#added }
    this.#askedMs = nowMs
    this.#left = kept
    this.#used = 0
    this.#added = []
    this.#sinceAsked = 0
    return question
  }

  /** What was answered to it. */
  applyResponse(nowMs: number, question: ShareRequest, answer: ShareResponse): void {
    const sentMs = this.#told?.sentMs ?? nowMs
    this.#told = undefined
    this.#alone = undefined
    const { widthMs } = this.#slots
    this.#slot = answer.slot
    this.#left += answer.granted
    // Since it was sent, not since it came: no permit is used later than it is counted.
    this.#untilMs = sentMs + answer.slot * widthMs - answer.nowMs
    this.#known = snapshotFrom(answer, nowMs, widthMs, this.windowMs)
    this.#heardMs = nowMs
    if (answer.granted === 0) this.#fetchAgainMs = nowMs + TELL_MS
    if (answer.granted >= question.need) return
    const { least, most } = ASK_AGAIN_MS
    const againMs = Math.min(most, this.windowMs / 64, this.#known.waitMs(nowMs, this.max, 1))
    this.#refusedUntilMs = nowMs + Math.max(least, againMs)
  }

  /**
   * If anything was asked, nobody knows whether it was heard. All at hand counts as used, what was added is
   * told again.
   */
  failRequest(): void {
    if (!this.#told) return
    this.#added = [...this.#told.added, ...this.#added]
    this.#told = undefined
    this.#left = 0
    this.#used = 0
  }

  /** All that is at hand is to be given back at the next exchange. */
  returnAll(): void {
    this.#untilMs = Number.NEGATIVE_INFINITY
    this.#usedMs = Number.NEGATIVE_INFINITY
  }

  #tellAnew(nowMs: number): void {
    this.#left = 0
    this.#used = 0
    this.#added = this.#own.moments(nowMs, this.windowMs)
    this.#known = undefined
  }

  #use(nowMs: number, amount: number): void {
    this.#own.add(nowMs, amount, this.windowMs)
    this.#usedMs = nowMs
    this.#sinceAsked += amount
  }

  #comfort(nowMs: number): number {
    const rate = this.#sinceAsked / Math.max(20, nowMs - this.#askedMs)
    return 1 + Math.ceil(rate * Math.min(COMFORT_MS, this.windowMs / 16))
  }

  #isIdle(nowMs: number): boolean {
    const isScarce = this.#free(nowMs) < this.max * FEW
    const idleMs = Math.min(IDLE_MS, this.windowMs * IDLE_SHARE)
    return nowMs - this.#usedMs >= (isScarce ? Math.min(idleMs, this.#slots.widthMs, 250) : idleMs)
  }

  /** What nobody has used, nor has at hand, as far as is known. */
  #free(nowMs: number): number {
    const untold = this.#added.reduce((sum, [, amount]) => sum + amount, 0)
    return this.max - (this.#known?.used(nowMs) ?? 0) - untold
  }

  #verdict(nowMs: number, allowed: boolean): Verdict {
    const own = this.#own.peek(nowMs, 1, this.max, this.windowMs)
    const remaining = Math.max(0, Math.min(own.remaining, this.#free(nowMs) + this.#left))
    const resetMs = Math.max(own.resetMs, this.#known?.resetMs(nowMs) ?? 0)
    const waitMs = allowed ? 0 : Math.max(1, this.#known?.waitMs(nowMs, this.max, 1) ?? 1)
    return { allowed, remaining, resetMs, waitMs }
  }
}

const NOTHING_USED = new SlidingWindow()
