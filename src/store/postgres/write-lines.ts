import { setTimeout as delay } from 'node:timers/promises'
import { StoreUnavailable } from '../store-unavailable.ts'

/** Writes of one node that run one after another, so that those that wait for each other hold one connection together. */
export class WriteLines {
  /** By the name of a line, the end of its last write. */
  readonly #ends = new Map<string, Promise<void>>()
  readonly #waitMs: number

  /** `waitMs` is the maximum time that a write waits in its line. */
  constructor(waitMs: number) {
    this.#waitMs = waitMs
  }

  /** Runs a write after those before it in its line. Rejects if they take too long, as if no connection were free. */
  async run<Result>(line: string, write: () => Promise<Result>): Promise<Result> {
    const before = this.#ends.get(line)
    const { promise: end, resolve } = Promise.withResolvers<void>()
    this.#ends.set(line, end)
    try {
      if (before && !(await this.#isSoonOver(before)))
        throw new StoreUnavailable('earlier writes of this kind to the database take too long')
      return await write()
    } finally {
      // Those behind a write that gave up wait for those before it, too.
      void Promise.resolve(before).then(() => {
        resolve()
        if (this.#ends.get(line) === end) this.#ends.delete(line)
      })
    }
  }

  async #isSoonOver(before: Promise<void>): Promise<boolean> {
    const timer = new AbortController()
    const timeout = delay(this.#waitMs, false, { signal: timer.signal })
    const isOver = await Promise.race([before.then(() => true), timeout])
    timer.abort()
    return isOver
  }
}
