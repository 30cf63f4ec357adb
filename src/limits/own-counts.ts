import type { Counted, Counts } from './counts.ts'
import { Roll } from './roll.ts'
import { SlidingWindow, type Verdict } from './sliding-window.ts'

/** The counts of one node that is alone: in memory, exact, and answered in the same turn. */
export class OwnCounts implements Counts {
  readonly #rolls = new Map<string, Roll<KeptWindow>>()
  readonly #nowMs: () => number

  /** `nowMs` is a clock that never goes back. */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs
  }

  take(counted: Counted): Verdict {
    const nowMs = this.#nowMs()
    return this.#window(counted, nowMs).take(nowMs, 1, counted.most, counted.windowMs)
  }

  check(counted: Counted): Verdict {
    return this.look(counted)
  }

  look({ name, whom, most, windowMs }: Counted): Verdict {
    const kept = this.#rolls.get(name)?.get(whom)
    if (!kept) return { allowed: most > 0, remaining: most, resetMs: 0, waitMs: 0 }
    return kept.window.look(this.#nowMs(), 1, most, windowMs)
  }

  add(counted: Counted, amount: number): void {
    const nowMs = this.#nowMs()
    this.#window(counted, nowMs).add(nowMs, amount, counted.windowMs)
  }

  #window({ name, whom, windowMs }: Counted, nowMs: number): SlidingWindow {
    let roll = this.#rolls.get(name)
    if (!roll) this.#rolls.set(name, (roll = new Roll(() => new KeptWindow())))
    const kept = roll.of(whom, nowMs)
    kept.windowMs = windowMs
    return kept.window
  }
}

class KeptWindow {
  readonly window = new SlidingWindow()
  windowMs = 0

  isIdle(nowMs: number): boolean {
    return this.window.sum(nowMs, this.windowMs) === 0
  }
}
