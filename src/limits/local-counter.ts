import type { CountedLimit, RateCounter } from './rate-counter.ts'
import { SubjectTable } from './client-table.ts'
import { SlidingWindow, type Verdict } from './sliding-window.ts'

/** Counter of a node that runs alone: in memory, exact, and always synchronous. */
export class LocalRateCounter implements RateCounter {
  readonly #tables = new Map<string, SubjectTable<WindowEntry>>()
  readonly #nowMs: () => number

  /** `nowMs` is a monotonic clock. */
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

  peek({ name, subject, max, windowMs }: CountedLimit): Verdict {
    const entry = this.#tables.get(name)?.get(subject)
    if (!entry) return { allowed: max > 0, remaining: max, resetMs: 0, waitMs: 0 }
    return entry.window.peek(this.#nowMs(), 1, max, windowMs)
  }

  add(counted: CountedLimit, amount: number): void {
    const nowMs = this.#nowMs()
    this.#window(counted, nowMs).add(nowMs, amount, counted.windowMs)
  }

  #window({ name, subject, windowMs }: CountedLimit, nowMs: number): SlidingWindow {
    let table = this.#tables.get(name)
    if (!table) this.#tables.set(name, (table = new SubjectTable(() => new WindowEntry())))
    const entry = table.getOrCreate(subject, nowMs)
    entry.windowMs = windowMs
    return entry.window
  }
}

class WindowEntry {
  readonly window = new SlidingWindow()
  windowMs = 0

  isIdle(nowMs: number): boolean {
    return this.window.sum(nowMs, this.windowMs) === 0
  }
}
