import { decimalIn, mappingIn } from '../management/settings/decimal-map.ts'
import type { Decimal } from '../domain/decimal.ts'
import { GatewayError } from '../errors.ts'
import { Cells, UnreadableValue } from './cells.ts'
import type { ReportLine } from './report.ts'

/** Options of another gateway. Unreadable ones are skipped, each with a line of the report. */
export class FamilyOptions {
  /** Report lines about options that could not be read. */
  readonly skipped: ReportLine[] = []
  readonly #options: ReadonlyMap<string, unknown>

  constructor(options: ReadonlyMap<string, unknown>) {
    this.#options = options
  }

  /** Names of all saved options. */
  get names(): readonly string[] {
    return [...this.#options.keys()]
  }

  /** Reads an option as text; undefined if it was never saved or is not a text. */
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

  /** Reads an option that holds a JSON object; undefined if there is none. */
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

  /** Reads an option that maps names to decimals, exactly; skips values that are not decimals. */
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
