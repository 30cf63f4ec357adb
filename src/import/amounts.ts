import { type Decimal, decimalText, divide, multiply, parseDecimal } from '../domain/decimal.ts'
import type { AmountSums, SummedColumn } from '../store/operations/find-accounts.ts'
import { UnreadableValue } from './cells.ts'

/** Default of the other gateways: quota units per dollar. */
const DEFAULT_UNITS_PER_DOLLAR: Decimal = { digits: 500_000n, scale: 0 }

/** Converts amounts of quota from the unit of the source to the unit here. */
export class QuotaConverter {
  readonly #unitsThere: Decimal
  readonly #unitsHere: number

  /** `unitsThere`: `QuotaPerUnit` of the source; undefined if it was never set. Throws `UnreadableValue`. */
  constructor(unitsThere: string | undefined, unitsHere: number) {
    const read = unitsThere === undefined ? DEFAULT_UNITS_PER_DOLLAR : parseDecimal(unitsThere)
    if (!read || read.digits <= 0n) throw new UnreadableValue('QuotaPerUnit', 'a number above 0')
    this.#unitsThere = read
    this.#unitsHere = unitsHere
  }

  /** Tells whether a unit is worth the same on both sides. */
  get areSame(): boolean {
    return this.#unitsThere.digits === BigInt(this.#unitsHere) * 10n ** BigInt(this.#unitsThere.scale)
  }

  /** Units per dollar on both sides, in words. */
  get description(): string {
    return `${decimalText(this.#unitsThere)} to the dollar there, ${this.#unitsHere} here`
  }

  /** Converts an amount, rounding half away from zero. Throws `UnreadableValue` beyond 2^53. */
  convert(column: string, amount: number): number {
    if (this.areSame) return amount
    const value = multiply(
      { digits: BigInt(amount), scale: 0 },
      { digits: BigInt(this.#unitsHere), scale: 0 },
    )
    const converted = Number(divide(value, this.#unitsThere, 0).digits)
    if (!Number.isSafeInteger(converted))
      throw new UnreadableValue(column, 'an amount that can be counted here')
    return converted
  }
}

/**
 * Maximum id, and maximum sum of a column over all users or tokens: half of the range of safe integers, so
 * that later charges and ids have the other half.
 */
export const MAX_IMPORTED = 2 ** 52

/** Sums of the amounts of all users and tokens: those here, and those imported so far. */
export class RunningSums {
  readonly #sums: Record<SummedColumn, number>

  constructor(here: AmountSums) {
    this.#sums = { ...here }
  }

  /** Adds the amounts of a row. Throws `UnreadableValue` and adds none of them if a sum becomes too large. */
  add(amounts: Partial<AmountSums>): void {
    const added = Object.entries(amounts) as [SummedColumn, number][]
    for (const [column, amount] of added) {
      if (this.#sums[column] + Math.abs(amount) <= MAX_IMPORTED) continue
      const [, name = ''] = column.split('.')
      throw new UnreadableValue(name, `an amount that, with all others, is at most ${MAX_IMPORTED}`)
    }
    for (const [column, amount] of added) this.#sums[column] += Math.abs(amount)
  }
}
