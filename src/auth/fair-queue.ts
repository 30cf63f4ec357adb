/** Work that waits for its turn. */
interface Waiting {
  readonly whose: string
  /** Virtual time: the least is next. */
  readonly tag: number
  readonly start: () => void
  readonly refuse: () => void
}

/**
 * Lets work begin, a few pieces at a time, in turns that go round those who wait, however many pieces each of
 * them has brought: the start tags of start-time fair queueing. Where too many wait, those who brought the
 * most are refused.
 */
export class FairQueue {
  readonly #atOnce: number
  readonly #mostWaiting: number
  /** In the order that it came. */
  readonly #waiting: Waiting[] = []
  /** The tag of the latest piece of those who have work here. */
  readonly #latest = new Map<string, { tag: number; pieces: number }>()
  #running = 0
  /** Virtual time: the tag of what began last. */
  #now = 0

  constructor(atOnce: number, mostWaiting: number) {
    this.#atOnce = atOnce
    this.#mostWaiting = mostWaiting
  }

  /** Runs `work` in its turn; rejects with what `refusal` makes where too many wait. */
  async run<Result>(whose: string, refusal: () => Error, work: () => Promise<Result>): Promise<Result> {
    const latest = this.#latest.get(whose)
    const tag = latest ? Math.max(this.#now, latest.tag + 1) : this.#now
    if (this.#running >= this.#atOnce) this.#makeRoom(tag, refusal)
    this.#latest.set(whose, { tag, pieces: (latest?.pieces ?? 0) + 1 })
    try {
      if (this.#running >= this.#atOnce) await this.#wait(whose, tag, refusal)
      else this.#begin(tag)
      try {
        return await work()
      } finally {
        this.#running -= 1
        this.#next()
      }
    } finally {
      this.#leave(whose)
    }
  }

  #wait(whose: string, tag: number, refusal: () => Error): Promise<void> {
    return new Promise((resolve, reject) => {
      const start = (): void => {
        this.#begin(tag)
        resolve()
      }
      this.#waiting.push({ whose, tag, start, refuse: () => reject(refusal()) })
    })
  }

  #makeRoom(tag: number, refusal: () => Error): void {
    if (this.#waiting.length < this.#mostWaiting) return
    const last = this.#waiting.reduce((most, one) => (one.tag >= most.tag ? one : most))
    if (last.tag <= tag) throw refusal()
    this.#waiting.splice(this.#waiting.indexOf(last), 1)
    last.refuse()
  }

  #begin(tag: number): void {
    this.#running += 1
    this.#now = Math.max(this.#now, tag)
  }

  #next(): void {
    if (this.#waiting.length === 0) return
    const first = this.#waiting.reduce((least, one) => (one.tag < least.tag ? one : least))
    this.#waiting.splice(this.#waiting.indexOf(first), 1)
    first.start()
  }

  #leave(whose: string): void {
    const latest = this.#latest.get(whose)
    if (!latest) return
    latest.pieces -= 1
    if (latest.pieces === 0) this.#latest.delete(whose)
  }
}
