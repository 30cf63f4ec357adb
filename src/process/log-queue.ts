import { write, writeSync } from 'node:fs'

/**
 * Characters that wait to be written at the most: some ten thousand requests. What comes beyond is dropped.
 */
const MOST = 4 * 1024 * 1024
/** Characters that are written at once, */
const ENOUGH = 12_288
/** and how often whatever there is. */
const EVERY_MS = 250
/** How soon a reader that took nothing is tried again. */
const AGAIN_MS = 20
/** How long an end waits for a reader. */
const PATIENCE_MS = 1_000

/**
 * Lines on their way to a file, a pipe or a terminal. Nobody waits for them: where the other side reads too
 * slowly, not at all, or has no room left, a bounded number is kept and tried again, the rest is dropped and
 * counted, and what was kept of the old ones stays in order.
 */
export class LogQueue {
  readonly #file: number
  readonly #timer: NodeJS.Timeout
  /** Whole lines. */
  #gathered = ''
  /** What was tried to be written, from the first byte that is not. */
  #rest: Buffer = Buffer.alloc(0)
  #isWriting = false
  #dropped = 0
  #untold = 0
  readonly #onDropped: (count: number) => void

  /**
   * Writes to a file descriptor. `onDropped` is called with their number once there is room again for a line
   * about them.
   */
  constructor(file: number, onDropped: (count: number) => void) {
    this.#file = file
    this.#onDropped = onDropped
    this.#timer = setInterval(() => this.#look(), EVERY_MS).unref()
    process.on('exit', this.#atExit)
  }

  /** Lines dropped so far. */
  get dropped(): number {
    return this.#dropped
  }

  /** Takes a line, its end included, or drops it. Never waits and never throws. */
  write(line: string): void {
    if (this.#rest.length + this.#gathered.length + line.length > MOST) {
      this.#dropped += 1
      this.#untold += 1
      return
    }
    this.#gathered += line
    if (this.#gathered.length >= ENOUGH) this.#write()
  }

  /** Writes what there is, as far as somebody reads within a second. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    const untilMs = performance.now() + PATIENCE_MS
    for (this.#look(); !this.#isEmpty && performance.now() < untilMs; this.#look())
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
  }

  get #isEmpty(): boolean {
    return this.#rest.length === 0 && this.#gathered === ''
  }

  #look(): void {
    const untold = this.#untold
    if (untold > 0 && this.#rest.length + this.#gathered.length < MOST / 2) {
      this.#untold = 0
      this.#onDropped(untold)
    }
    this.#write()
  }

  #write(): void {
    if (this.#isWriting || this.#isEmpty) return
    this.#take()
    this.#isWriting = true
    write(this.#file, this.#rest, (error, written) => {
      this.#isWriting = false
      if (error) {
        if (error.code === 'EAGAIN') setTimeout(() => this.#write(), AGAIN_MS).unref()
        return
      }
      this.#rest = this.#rest.subarray(written)
      if (this.#rest.length > 0 || this.#gathered.length >= ENOUGH) this.#write()
    })
  }

  #take(): void {
    if (this.#rest.length > 0) return
    this.#rest = Buffer.from(this.#gathered)
    this.#gathered = ''
  }

  // There is no turn of the event loop left: as much as is taken at once. A piece that is being written is
  // lost at most.
  readonly #atExit = (): void => {
    if (this.#isWriting) this.#rest = this.#rest.subarray(this.#rest.length)
    try {
      for (this.#take(); this.#rest.length > 0; this.#take())
        this.#rest = this.#rest.subarray(writeSync(this.#file, this.#rest))
    } catch {}
  }
}
