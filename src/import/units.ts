import { type Decimal, decimalText, divide, multiply, parseDecimal } from '../domain/decimal.ts'
import { UnreadableValue } from './cells.ts'

/** Default of the other gateways: quota units per dollar. */
const DEFAULT_UNITS_PER_DOLLAR: Decimal = { digits: 500_000n, scale: 0 }

/** Converts amounts of quota from the unit of the source to the unit here. */
export class Units {
  readonly #theirs: Decimal
  readonly #ours: number

  /** `theirs` is the option of the source; undefined = never set. Throws `UnreadableValue`. */
  constructor(theirs: string | undefined, ours: number) {
    const read = theirs === undefined ? DEFAULT_UNITS_PER_DOLLAR : parseDecimal(theirs)
    if (!read || read.digits <= 0n) throw new UnreadableValue('QuotaPerUnit', 'a number above 0')
    this.#theirs = read
    this.#ours = ours
  }

  /** Tells whether a unit is worth the same on both sides. */
  get areSame(): boolean {
    return this.#theirs.digits === BigInt(this.#ours) * 10n ** BigInt(this.#theirs.scale)
  }

  /** Units per dollar on both sides, in words. */
  get description(): string {
    return `${decimalText(this.#theirs)} to the dollar there, ${this.#ours} here`
  }

  /** Converts an amount, rounding half away from zero. Throws `UnreadableValue` beyond 2^53. */
  convert(column: string, amount: number): number {
    if (this.areSame) return amount
    const worth = multiply({ digits: BigInt(amount), scale: 0 }, { digits: BigInt(this.#ours), scale: 0 })
    const converted = Number(divide(worth, this.#theirs, 0).digits)
    if (!Number.isSafeInteger(converted))
      throw new UnreadableValue(column, 'an amount that can be counted here')
    return converted
  }
}
