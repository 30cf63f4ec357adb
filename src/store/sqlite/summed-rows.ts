import type { DatabaseSync, StatementSync } from 'node:sqlite'

type Key = readonly (number | string)[]

/** Rows of one table of sums within the open transaction: accumulated, and each written once by `write`. */
export class SummedRows {
  readonly #upsert: StatementSync
  readonly #rows = new Map<string, { readonly key: Key; readonly sums: number[] }>()

  constructor(db: DatabaseSync, table: string, key: readonly string[], summed: readonly string[]) {
    // Casts keep the sums integers, because the driver binds every number as a double.
    const values = [...key.map(() => '?'), ...summed.map(() => 'CAST(? AS INTEGER)')]
    this.#upsert = db.prepare(
      `INSERT INTO ${table} (${[...key, ...summed].join(', ')}) VALUES (${values.join(', ')})
       ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${summed.map((name) => `${name} = ${name} + excluded.${name}`).join(', ')}`,
    )
  }

  /** Adds values to the row of a key. */
  add(key: Key, values: readonly number[]): void {
    // NUL separates the parts, because no text contains it.
    const name = key.join('\0')
    const row = this.#rows.get(name)
    if (row) for (let i = 0; i < values.length; i += 1) row.sums[i]! += values[i]!
    else this.#rows.set(name, { key, sums: [...values] })
  }

  /** Writes the accumulated sums. */
  write(): void {
    for (const { key, sums } of this.#rows.values()) this.#upsert.run(...key, ...sums)
    this.#rows.clear()
  }

  /** Discards the accumulated sums, for a rollback. */
  discard(): void {
    this.#rows.clear()
  }
}
