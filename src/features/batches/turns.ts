/** Lets a number of works run at a time; others wait for their turn. */
export class Turns {
  readonly #most: number
  readonly #waiting: (() => void)[] = []
  #running = 0

  constructor(most: number) {
    this.#most = most
  }

  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#running >= this.#most) await new Promise<void>((begin) => this.#waiting.push(begin))
    else this.#running += 1
    try {
      return await work()
    } finally {
      // The place goes to the one that waits longest.
      const next = this.#waiting.shift()
      if (next) next()
      else this.#running -= 1
    }
  }
}
