import type { CommandContext } from './command-context.ts'

/** Width of the progress bar, in characters. */
const BAR_WIDTH = 30
/**
 * Minimum number of units, such as rows, for which progress is printed if standard error is not a terminal.
 * Smaller tasks end soon.
 */
const MIN_REPORTED = 1_000
/** Number of progress lines if standard error is not a terminal. */
const LINES = 10

/**
 * Shows the progress of a long command on standard error: as a bar on a terminal, otherwise as one line per
 * tenth.
 */
export class Progress {
  readonly #err: CommandContext['err']
  readonly #isSilent: boolean
  /** Unit of the work, such as `users` or `rows`. */
  readonly #unit: string
  #reportedTenths = 0
  #hasBar = false

  /** With `isSilent`, as for `--json`, nothing is shown. */
  constructor({ err }: CommandContext, unit: string, isSilent: boolean) {
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
    if (total < MIN_REPORTED || tenths <= this.#reportedTenths) return
    this.#reportedTenths = tenths
    this.#err.write(`${text}\n`)
  }

  /** Removes the bar, so that the next output begins on an empty line. */
  end(): void {
    if (this.#hasBar) this.#err.write('\r\u001B[2K')
    this.#hasBar = false
  }
}
