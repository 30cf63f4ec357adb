import { chargeOfTools } from '../domain/charge.ts'
import { toolKindAtVendor, priceOfToolUse } from '../domain/tool-price.ts'
import type { ToolKind } from '@sluice/wire/tool-use'
import type { Call, GeneratedOutput } from './call.ts'
import type { Tap } from './dialects/answer-reader.ts'
import { fillsPrompt } from './held-tools.ts'
import { statedServiceSoFar } from './price-usage.ts'
import { toolPricingAt, toolsForChannel } from './tool-pricing.ts'
import type { AttemptTarget } from './request-stages.ts'

/** Minimum bytes of text per token, so that estimates are rather too high than too low. */
const BYTES_PER_TOKEN = 3
/** Fraction of the covered output tokens that must be used before more quota is reserved. */
const GROW_AT = 0.8
/**
 * Factor by which the gateway's count of output tokens may exceed a maximum that the upstream enforces with
 * its own count.
 */
const TOLERANCE = 1.25

/** Output that a stream has generated so far. */
export interface EmittedOutput {
  readonly emittedBytes: number
  readonly contentFrames: number
  readonly text: string
}

type WatchedOutput = EmittedOutput & Pick<Tap, 'tools' | 'usage' | 'served'>

/**
 * Watches that a stream's output and tool uses stay within the call's hold (reserved quota), and reserves
 * more in time.
 */
export class OutputWatch {
  readonly #call: Call
  readonly #target: AttemptTarget
  readonly #emitted: WatchedOutput
  readonly #tools: ToolWatch
  #budget: number
  /** Number of tool uses that fill the prompt, and that the hold covers. */
  #readings: number
  #sliceQuota: number | undefined
  // The tokens at the last exact count, and how much output the stream had then.
  #counted = { tokens: 0, bytes: 0, frames: 0 }

  constructor(call: Call, target: AttemptTarget, emitted: WatchedOutput) {
    this.#target = target
    this.#tools = new ToolWatch(call, target, emitted, (count) => this.#coverReadings(count))
    this.#call = call
    this.#emitted = emitted
    const { tokens, readings } = call.plan.estimate.budget
    this.#budget = tokens
    this.#readings = readings
  }

  /** Estimated output tokens so far; each event counts as at least one. */
  get tokens(): number {
    const { emittedBytes, contentFrames } = this.#emitted
    const { tokens, bytes, frames } = this.#counted
    return tokens + Math.max(contentFrames - frames, Math.ceil((emittedBytes - bytes) / BYTES_PER_TOKEN))
  }

  /** Output tokens so far, and the cost in quota units of this output and the prompt. */
  get progress(): { readonly tokens: number; readonly cost: number } {
    const { tokens } = this
    return { tokens, cost: this.#call.costOf(this.#target, this.#soFar) }
  }

  /**
   * Number of further bytes of the stream whose output is certainly covered by the reserved quota and by what
   * can still be reserved. A lower bound, because text is only a small part of an event.
   */
  get affordableBytes(): number {
    const { plan, hold } = this.#call
    const { slice, quotaOf } = plan.estimate.budget
    const sliceQuota = (this.#sliceQuota ??=
      quotaOf(this.#budget + slice, this.#readings) - quotaOf(this.#budget, this.#readings))
    const slices = sliceQuota === 0 ? Infinity : Math.floor(hold.maxGrowth / sliceQuota)
    return Math.max(0, this.#budget * GROW_AT + slices * slice - this.tokens) * BYTES_PER_TOKEN
  }

  /** Records what the stream has cost so far, so that this is charged even after a crash. */
  mark(): void {
    const { emittedBytes, tools } = this.#emitted
    if (emittedBytes > 0 || tools.begun.length > 0) this.#call.mark(this.#target, this.#soFar)
  }

  get #soFar(): GeneratedOutput {
    return { tokens: this.tokens, uses: this.#emitted.tools.uses, served: statedServiceSoFar(this.#emitted) }
  }

  /**
   * Reserves more quota before the hold (reserved quota) is used up. Returns false if the hold seems to be
   * used up and no more can be reserved; then `isUsedUp` must be called.
   */
  isWithinHold(mayGrow: boolean): boolean {
    if (mayGrow && !this.#tools.isWithinHold()) return false
    const tokens = this.tokens
    // A request with a maximum of 0 only fills the prompt cache: its events have no text and add no cost.
    if (tokens === 0) return true
    while (tokens >= this.#budget * GROW_AT) {
      // The maximum is enough for an upstream that respects it. Only an exact count shows that one does not.
      if (this.#budget === this.#call.plan.estimate.budget.maximum || !mayGrow || !this.#grow())
        return tokens <= this.#limit()
    }
    return true
  }

  /** Reserves quota for the tool uses that came together with the end of the stream, as far as possible. */
  coverUses(): void {
    this.#tools.isWithinHold()
  }

  // The hold (reserved quota) first grows up to the maximum of output tokens.
  #grow(): boolean {
    const { plan, hold } = this.#call
    const { maximum = Infinity, slice, quotaOf } = plan.estimate.budget
    const left = maximum - this.#budget
    const grown = this.#budget + (left > 0 ? Math.min(slice, left) : slice)
    if (!hold.grow(quotaOf(grown, this.#readings) - quotaOf(this.#budget, this.#readings))) return false
    this.#budget = grown
    return true
  }

  // Reserves quota for `count` tool uses that fill the prompt with their results.
  #coverReadings(count: number): boolean {
    if (count <= this.#readings) return true
    const { plan, hold } = this.#call
    const { quotaOf } = plan.estimate.budget
    if (!hold.grow(quotaOf(this.#budget, count) - quotaOf(this.#budget, this.#readings))) return false
    this.#readings = count
    return true
  }

  /**
   * Counts tokens exactly to find out whether the reserved quota is used up. If the upstream has exceeded the
   * maximum, more quota is reserved first.
   */
  async isUsedUp(mayGrow: boolean): Promise<boolean> {
    const { emittedBytes: bytes, contentFrames: frames, text } = this.#emitted
    this.#counted = { tokens: await this.#call.services.count.count(text), bytes, frames }
    if (!this.#tools.isWithinHold()) return true
    const mayExceed = mayGrow && this.#budget === this.#call.plan.estimate.budget.maximum
    while (this.tokens > this.#limit()) if (!mayExceed || !this.#grow()) return true
    return false
  }

  // Upstreams count with their own vocabularies. A stream must not be cut off if its upstream respects the
  // maximum by its own count.
  #limit(): number {
    const { maximum, slice } = this.#call.plan.estimate.budget
    if (this.#budget !== maximum) return this.#budget
    return Math.min(maximum * TOLERANCE, maximum + slice)
  }
}

/**
 * Watches that the tool uses of a stream stay within the reserved quota, which must always cover one use more
 * than have begun.
 */
class ToolWatch {
  readonly #call: Call
  readonly #target: AttemptTarget
  readonly #tap: Pick<Tap, 'tools'>
  /** Number of the stream's tool uses that have begun. */
  #seen = 0
  /**
   * Number of tool uses that the reserved quota covers and that have not begun, by kind; undefined before any
   * use began.
   */
  #paid: Map<ToolKind, number> | undefined
  /** Number of the offered tools' uses that have begun and whose results fill the prompt. */
  #readings = 0
  /** Reserves quota for this many such uses. */
  readonly #coverReadings: (count: number) => boolean

  constructor(
    call: Call,
    target: AttemptTarget,
    tap: Pick<Tap, 'tools'>,
    coverReadings: (count: number) => boolean,
  ) {
    this.#call = call
    this.#target = target
    this.#tap = tap
    this.#coverReadings = coverReadings
  }

  /**
   * Reserves more quota with each tool use that has begun. Returns false if no quota can be reserved for a
   * use.
   */
  isWithinHold(): boolean {
    const { begun } = this.#tap.tools
    for (; this.#seen < begun.length; this.#seen++) {
      const kind = begun[this.#seen]
      const { protocol: dialect } = this.#target.request
      if (kind && !this.#begin(toolKindAtVendor(kind, { dialect }))) return false
    }
    return true
  }

  #begin(kind: ToolKind): boolean {
    const paid = (this.#paid ??= this.#paidAtFirst())
    const before = paid.get(kind) ?? 0
    const isPaid = before > 0 || this.#grow(kind)
    paid.set(kind, Math.max(before - 1, 0) + (this.#grow(kind) ? 1 : 0))
    return isPaid && (this.#target.plan.tools === undefined || !fillsPrompt(kind) || this.#read())
  }

  #read(): boolean {
    if (!this.#coverReadings(this.#readings + 1)) return false
    this.#readings++
    this.#coverReadings(this.#readings + 1)
    return true
  }

  #grow(kind: ToolKind): boolean {
    const { plan, hold } = this.#call
    const tools = [
      { kind, count: 1, price: priceOfToolUse({ kind }, toolPricingAt(this.#call, this.#target)) },
    ]
    return hold.grow(chargeOfTools(plan.rate, tools))
  }

  #paidAtFirst(): Map<ToolKind, number> {
    const { settings, rate } = this.#call.plan
    const { channel, tools } = this.#target.plan
    const paid = new Map<ToolKind, number>()
    if (!tools) return paid
    for (const { kind } of toolsForChannel(settings, rate, channel, tools).known)
      if (kind) paid.set(kind, (paid.get(kind) ?? 0) + 1)
    return paid
  }
}
