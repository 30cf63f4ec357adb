import type { Shell } from './shell.ts'

/** Width of the bar, in characters. */
const BAR_WIDTH = 30
/** Amount of work from which progress is told where there is no terminal; less is over soon. */
const MIN_TOLD = 1_000
/** Parts of the work between two lines. */
const LINES = 10

/** Progress of a long command on standard error: a bar on a terminal, a line for each tenth elsewhere. */
export class Progress {
  readonly #err: Shell['err']
  readonly #isSilent: boolean
  /** Unit of the work: `users`, `rows`. */
  readonly #unit: string
  #toldTenths = 0
  #hasBar = false

  /** `isSilent`: nothing is shown, as with `--json`. */
  constructor({ err }: Shell, unit: string, isSilent: boolean) {
    this.#err = err
    this.#unit = unit
    this.#isSilent = isSilent
  }

  /** Shows how much of the work is done. */
  show(done: number, total: number): void {
    if (this.#isSilent || total <= 0) return
    const part = Math.min(1, done / total)
    const text = `${done} of ${total} ${this.#unit} (${Math.floor(part * 100)} %)`
    if (this.#err.isTTY) {
      const filled = Math.floor(part * BAR_WIDTH)
      this.#hasBar = true
      this.#err.write(`\r\u001B[2K[${'#'.repeat(filled)}${'-'.repeat(BAR_WIDTH - filled)}] ${text}`)
      return
    }
    const tenths = Math.floor(part * LINES)
    if (total < MIN_TOLD || tenths <= this.#toldTenths) return
    this.#toldTenths = tenths
    this.#err.write(`${text}\n`)
  }

  /** Removes the bar, so that the report begins on an empty line. */
  end(): void {
    if (this.#hasBar) this.#err.write('\r\u001B[2K')
    this.#hasBar = false
  }
}
