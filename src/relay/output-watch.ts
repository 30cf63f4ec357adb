import type { Call } from './call.ts'

/**
 * Bytes of text that certainly make a token, taken small: what is guessed by it is rather too much than too
 * little.
 */
const BYTES_PER_TOKEN = 3
/** The part of what a hold pays for at which it is made to grow. */
const GROW_AT = 0.8
/** How much the local count may lie above a maximum that the upstream keeps to by its own count. */
const TOLERANCE = 1.25

/** What a stream has generated so far. */
export interface EmittedOutput {
  readonly emittedBytes: number
  readonly contentFrames: number
  readonly text: string
}

/** Watches that a stream's output stays within what its hold pays for, and makes the hold grow in time. */
export class OutputWatch {
  readonly #call: Call
  readonly #emitted: EmittedOutput
  #budget: number
  // The last exact count, and where the stream was then.
  #counted = { tokens: 0, bytes: 0, frames: 0 }
  #grew = false

  constructor(call: Call, emitted: EmittedOutput) {
    this.#call = call
    this.#emitted = emitted
    this.#budget = call.budget.tokens
  }

  /** Output tokens so far: an event holds one at least. */
  get tokens(): number {
    const { emittedBytes, contentFrames } = this.#emitted
    const { tokens, bytes, frames } = this.#counted
    return tokens + Math.max(contentFrames - frames, Math.ceil((emittedBytes - bytes) / BYTES_PER_TOKEN))
  }

  /**
   * So many bytes of a stream cannot bring more than what the hold pays for, or can grow to: events take
   * many, and text is the least of it.
   */
  get affordableBytes(): number {
    const { budget, hold } = this.#call
    const slices = budget.sliceQuota === 0 ? Infinity : Math.floor(hold.maxGrowth / budget.sliceQuota)
    return Math.max(0, this.#budget * GROW_AT + slices * budget.slice - this.tokens) * BYTES_PER_TOKEN
  }

  /** False once the hold seems used up and cannot grow: then only an exact count can tell. */
  isWithinHold(mayGrow: boolean): boolean {
    const { budget, hold } = this.#call
    const tokens = this.tokens
    // A maximum of 0 fills the prompt cache: its stream has events, and needs no more than its hold while
    // they have no text.
    if (tokens === 0) return true
    while (tokens >= this.#budget * GROW_AT) {
      if (!mayGrow || !hold.grow(budget.sliceQuota)) return tokens <= this.#limit()
      this.#budget += budget.slice
      this.#grew = true
    }
    return true
  }

  /** Counts exactly; true if the hold is used up indeed. */
  async isUsedUp(): Promise<boolean> {
    const { emittedBytes: bytes, contentFrames: frames, text } = this.#emitted
    this.#counted = { tokens: await this.#call.count.count(text), bytes, frames }
    return this.tokens > this.#limit()
  }

  // Upstreams count by vocabularies of their own: one that keeps to a named maximum must not be cut for ours.
  #limit(): number {
    const { budget } = this.#call
    if (!budget.named || this.#grew) return this.#budget
    return Math.min(this.#budget * TOLERANCE, this.#budget + budget.slice)
  }
}
