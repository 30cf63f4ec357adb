import type { DatabaseSync, StatementSync } from 'node:sqlite'

/** Row of sums: its key in the order of the key's columns, and its sums. */
export interface SummedRow {
  readonly key: readonly (number | string)[]
  readonly sums: number[]
}

/** Rows of one table of sums: accumulated, and each written once by `write`. */
export class SummedRows {
  readonly #upsert: StatementSync
  readonly #zeros: readonly number[]
  readonly #rows = new Map<string, SummedRow>()

  constructor(db: DatabaseSync, table: string, key: readonly string[], summed: readonly string[]) {
    this.#zeros = summed.map(() => 0)
    // Casts keep the sums integers, because the driver binds every number as a double.
    const values = [...key.map(() => '?'), ...summed.map(() => 'CAST(? AS INTEGER)')]
    this.#upsert = db.prepare(
      `INSERT INTO ${table} (${[...key, ...summed].join(', ')}) VALUES (${values.join(', ')})
       ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${summed.map((name) => `${name} = ${name} + excluded.${name}`).join(', ')}`,
    )
  }

  /** Number of accumulated rows. */
  get size(): number {
    return this.#rows.size
  }

  /** The accumulated rows. */
  get rows(): Iterable<SummedRow> {
    return this.#rows.values()
  }

  /** The sums of the row with this key, to add to; `name` identifies the key. */
  sumsOf(name: string, key: SummedRow['key']): number[] {
    const row = this.#rows.get(name)
    if (row) return row.sums
    const sums = [...this.#zeros]
    this.#rows.set(name, { key, sums })
    return sums
  }

  /** Writes the accumulated sums. */
  write(): void {
    for (const { key, sums } of this.#rows.values()) this.#upsert.run(...key, ...sums)
    this.#rows.clear()
  }

  /** Discards the accumulated sums. */
  discard(): void {
    this.#rows.clear()
  }
}
