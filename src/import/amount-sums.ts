import type { AmountSums, SummedColumn } from '../store/operations/find-accounts.ts'
import { UnreadableValue } from './cells.ts'

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
