import { decimalIn, mappingIn } from '../../management/settings/decimal-map.ts'
import type { Decimal } from '../../domain/decimal.ts'
import { GatewayError } from '../../errors.ts'
import { Cells, UnreadableValue } from './cells.ts'
import type { ReportLine } from './report.ts'

/** The options of another gateway, read one by one; what cannot be read is a line. */
export class FamilyOptions {
  readonly skipped: ReportLine[] = []
  readonly #options: ReadonlyMap<string, unknown>

  constructor(options: ReadonlyMap<string, unknown>) {
    this.#options = options
  }

  /** The names of all that were ever saved. */
  get names(): readonly string[] {
    return [...this.#options.keys()]
  }

  /** An option as it is written; undefined if it was never saved or is no text. */
  text(name: string): string | undefined {
    if (!this.#options.has(name)) return undefined
    try {
      return new Cells({ value: this.#options.get(name) }).text('value').trim()
    } catch (error) {
      if (!(error instanceof UnreadableValue)) throw error
      this.#skip(name, error.message)
      return undefined
    }
  }

  /** The names that an option with a JSON object has; undefined if there is none to be read. */
  mapping(name: string): ReadonlyMap<string, unknown> | undefined {
    const text = this.text(name)
    if (text === undefined || text === '') return undefined
    try {
      return mappingIn(name, text)
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      this.#skip(name, error.message)
      return undefined
    }
  }

  /** The decimals of such an object, exactly as they are written; each that is none is a line. */
  decimals(name: string): ReadonlyMap<string, Decimal> | undefined {
    const mapping = this.mapping(name)
    if (!mapping) return undefined
    const decimals = new Map<string, Decimal>()
    for (const [entry, value] of mapping) {
      const decimal = decimalIn(value)
      if (decimal) decimals.set(entry, decimal)
      else this.#skip(`${name}: ${entry}`, 'expected a number from 0 to 1000000')
    }
    return decimals
  }

  #skip(name: string, note: string): void {
    this.skipped.push({ kind: 'option', id: undefined, name, fate: 'left', notes: [note] })
  }
}
