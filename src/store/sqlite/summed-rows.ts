import type { DatabaseSync, StatementSync } from 'node:sqlite'

type Key = readonly (number | string)[]

/** Statements kept for each table; a gateway needs a few. */
const MAX_STATEMENTS = 200

/**
 * Rows of one table of sums within the open transaction: accumulated, and each written once by `write`. Most
 * sums of a row are 0, and cost nothing: each set of other ones has a statement of its own.
 */
export class SummedRows {
  readonly #db: DatabaseSync
  readonly #table: string
  readonly #key: readonly string[]
  readonly #summed: readonly string[]
  /** By the columns that are not 0, as the bits of a number. */
  readonly #upserts = new Map<number, StatementSync>()
  readonly #rows = new Map<string, { readonly key: Key; readonly sums: number[] }>()

  constructor(db: DatabaseSync, table: string, key: readonly string[], summed: readonly string[]) {
    this.#db = db
    this.#table = table
    this.#key = key
    this.#summed = summed
  }

  /** Adds values to the row of a key; `name` identifies it. */
  add(name: string, key: Key, values: readonly number[]): void {
    const row = this.#rows.get(name)
    if (row) for (let i = 0; i < values.length; i += 1) row.sums[i]! += values[i]!
    else this.#rows.set(name, { key, sums: [...values] })
  }

  /** Writes the accumulated sums. */
  write(): void {
    for (const { key, sums } of this.#rows.values()) {
      const values: (number | string)[] = [...key]
      let set = 0
      for (let i = 0; i < sums.length; i += 1) {
        if (sums[i] === 0) continue
        set += 2 ** i
        values.push(sums[i]!)
      }
      this.#upsertOf(set, sums).run(...values)
    }
    this.#rows.clear()
  }

  /** Discards the accumulated sums, for a rollback. */
  discard(): void {
    this.#rows.clear()
  }

  #upsertOf(set: number, sums: readonly number[]): StatementSync {
    const known = this.#upserts.get(set)
    if (known) return known
    const changed = this.#summed.filter((_, i) => sums[i] !== 0)
    // Casts keep the sums integers, because the driver binds every number as a double.
    const values = [
      ...this.#key.map(() => '?'),
      ...sums.map((sum) => (sum === 0 ? '0' : 'CAST(? AS INTEGER)')),
    ]
    const updates = changed.map((name) => `${name} = ${name} + excluded.${name}`)
    const made = this.#db.prepare(
      `INSERT INTO ${this.#table} (${[...this.#key, ...this.#summed].join(', ')}) VALUES (${values.join(', ')})
       ON CONFLICT (${this.#key.join(', ')}) DO ${updates.length === 0 ? 'NOTHING' : `UPDATE SET ${updates.join(', ')}`}`,
    )
    if (this.#upserts.size >= MAX_STATEMENTS) this.#upserts.clear()
    this.#upserts.set(set, made)
    return made
  }
}
