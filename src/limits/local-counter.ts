import type { CountedLimit, LimitCounter } from './limit-counter.ts'
import { ClientTable } from './client-table.ts'
import { SlidingWindow, type Verdict } from './sliding-window.ts'

/** The counts of one node that is alone: in memory, exact, and answered in the same turn. */
export class LocalCounter implements LimitCounter {
  readonly #rolls = new Map<string, ClientTable<KeptWindow>>()
  readonly #nowMs: () => number

  /** `nowMs` is a clock that never goes back. */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs
  }

  take(counted: CountedLimit): Verdict {
    const nowMs = this.#nowMs()
    return this.#window(counted, nowMs).take(nowMs, 1, counted.max, counted.windowMs)
  }

  check(counted: CountedLimit): Verdict {
    return this.peek(counted)
  }

  peek({ name, subject: whom, max: most, windowMs }: CountedLimit): Verdict {
    const kept = this.#rolls.get(name)?.get(whom)
    if (!kept) return { allowed: most > 0, remaining: most, resetMs: 0, waitMs: 0 }
    return kept.window.peek(this.#nowMs(), 1, most, windowMs)
  }

  add(counted: CountedLimit, amount: number): void {
    const nowMs = this.#nowMs()
    this.#window(counted, nowMs).add(nowMs, amount, counted.windowMs)
  }

  #window({ name, subject: whom, windowMs }: CountedLimit, nowMs: number): SlidingWindow {
    let roll = this.#rolls.get(name)
    if (!roll) this.#rolls.set(name, (roll = new ClientTable(() => new KeptWindow())))
    const kept = roll.getOrCreate(whom, nowMs)
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
