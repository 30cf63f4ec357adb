import { UnreadableValue } from '@sluice/import/row-reader'
import { type Decimal, decimalText, divide, multiply, parseDecimal } from '../domain/decimal.ts'
import type { AmountSums, SummedColumn } from '../store/operations/find-accounts.ts'

/** Quota units per dollar that one-api and new-api use by default. */
const DEFAULT_UNITS_PER_DOLLAR: Decimal = { digits: 500_000n, scale: 0 }

/** Converts amounts of quota from the unit of the source to the unit of this gateway. */
export class QuotaConverter {
  readonly #unitsThere: Decimal
  readonly #unitsHere: number

  /**
   * `unitsThere` is the number of quota units per dollar in the source, its option `QuotaPerUnit`; undefined
   * if it was never set. Throws `UnreadableValue`.
   */
  constructor(unitsThere: string | undefined, unitsHere: number) {
    const read = unitsThere === undefined ? DEFAULT_UNITS_PER_DOLLAR : parseDecimal(unitsThere)
    if (!read || read.digits <= 0n) throw new UnreadableValue('QuotaPerUnit', 'a number above 0')
    this.#unitsThere = read
    this.#unitsHere = unitsHere
  }

  /** Whether a quota unit is worth the same in the source and in this gateway. */
  get areSame(): boolean {
    return this.#unitsThere.digits === BigInt(this.#unitsHere) * 10n ** BigInt(this.#unitsThere.scale)
  }

  /** Quota units per dollar in the source and in this gateway, in words. */
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

  /** Converts the amount of a budget: at least 1 if it is above 0, because a budget of 0 is none. */
  convertBudget(column: string, amount: number): number {
    const converted = this.convert(column, amount)
    return amount > 0 ? Math.max(1, converted) : converted
  }
}

/**
 * Maximum imported id, and maximum sum of an amount over all users or tokens. This is half of the range of
 * safe integers; the other half is left for later charges and ids.
 */
export const MAX_IMPORTED_NUMBER = 2 ** 52

/** Sums of the amounts of all users and tokens: the ones in this gateway, and the ones imported so far. */
export class ImportedAmountSums {
  readonly #sums: Record<SummedColumn, number>

  constructor(here: AmountSums) {
    this.#sums = { ...here }
  }

  /**
   * Adds the amounts of a row to the sums. If a sum becomes too large, adds none of them and throws
   * `UnreadableValue`.
   */
  add(amounts: Partial<AmountSums>): void {
    const added = Object.entries(amounts) as [SummedColumn, number][]
    for (const [column, amount] of added) {
      if (this.#sums[column] + Math.abs(amount) <= MAX_IMPORTED_NUMBER) continue
      const [, name = ''] = column.split('.')
      throw new UnreadableValue(name, `an amount that, with all others, is at most ${MAX_IMPORTED_NUMBER}`)
    }
    for (const [column, amount] of added) this.#sums[column] += Math.abs(amount)
  }
}
