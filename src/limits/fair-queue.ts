/** A piece of work that waits. */
interface WaitingWork {
  readonly flow: string
  /** Virtual start time; the work with the lowest start time runs next. */
  readonly tag: number
  readonly start: () => void
  readonly refuse: () => void
}

/**
 * Runs work with limited concurrency, and fairly: each flow (such as a user) gets the same share, regardless
 * of how much it submits. The algorithm is start-time fair queueing. If more than `maxWaiting` pieces of work
 * wait, work of the flow with the most waiting work is refused.
 */
export class FairQueue {
  readonly #concurrency: number
  readonly #maxWaiting: number
  /** Waiting work in order of arrival. */
  readonly #waiting: WaitingWork[] = []
  /**
   * For each flow whose work waits or runs: its latest virtual start time, and the number of its pieces of
   * work.
   */
  readonly #latest = new Map<string, { tag: number; pieces: number }>()
  #running = 0
  /** Virtual time: the virtual start time of the work that was started last. */
  #now = 0

  constructor(concurrency: number, maxWaiting: number) {
    this.#concurrency = concurrency
    this.#maxWaiting = maxWaiting
  }

  /** Runs `work` when it is its turn; rejects with `refusal()` if too much work waits. */
  async run<Result>(flow: string, refusal: () => Error, work: () => Promise<Result>): Promise<Result> {
    const latest = this.#latest.get(flow)
    const tag = latest ? Math.max(this.#now, latest.tag + 1) : this.#now
    if (this.#running >= this.#concurrency) this.#shed(tag, refusal)
    this.#latest.set(flow, { tag, pieces: (latest?.pieces ?? 0) + 1 })
    try {
      if (this.#running >= this.#concurrency) await this.#wait(flow, tag, refusal)
      else this.#markStarted(tag)
      try {
        return await work()
      } finally {
        this.#running -= 1
        this.#next()
      }
    } finally {
      this.#release(flow)
    }
  }

  #wait(flow: string, tag: number, refusal: () => Error): Promise<void> {
    return new Promise((resolve, reject) => {
      const start = (): void => {
        this.#markStarted(tag)
        resolve()
      }
      this.#waiting.push({ flow, tag, start, refuse: () => reject(refusal()) })
    })
  }

  #shed(tag: number, refusal: () => Error): void {
    if (this.#waiting.length < this.#maxWaiting) return
    const last = this.#waiting.reduce((max, candidate) => (candidate.tag >= max.tag ? candidate : max))
    if (last.tag <= tag) throw refusal()
    this.#waiting.splice(this.#waiting.indexOf(last), 1)
    last.refuse()
  }

  #markStarted(tag: number): void {
    this.#running += 1
    this.#now = Math.max(this.#now, tag)
  }

  #next(): void {
    if (this.#waiting.length === 0) return
    const first = this.#waiting.reduce((min, candidate) => (candidate.tag < min.tag ? candidate : min))
    this.#waiting.splice(this.#waiting.indexOf(first), 1)
    first.start()
  }

  #release(flow: string): void {
    const latest = this.#latest.get(flow)
    if (!latest) return
    latest.pieces -= 1
    if (latest.pieces === 0) this.#latest.delete(flow)
  }
}
