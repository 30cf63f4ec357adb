import type { DatabaseSync, StatementSync } from 'node:sqlite'

/** Row of sums: its key in the order of the key's columns, and its sums. */
interface SummedRow {
  readonly key: readonly (number | string)[]
  readonly sums: number[]
}

/** Statements that add to some of the columns of a row, and that create the row. */
interface Addition {
  readonly update: StatementSync
  readonly insert: StatementSync
  readonly columns: readonly number[]
}

/**
 * Number of columns that are added together. Many sums are 0, but a statement for every combination would be
 * too many.
 */
const BLOCK = 4
/** Maximum number of cached statements; the blocks that are used differ by the latencies of the calls. */
const MAX_STATEMENTS = 100

/** Rows of a table of sums: accumulated, and each written once by `write`. */
export class SummedRows {
  readonly #db: DatabaseSync
  readonly #table: string
  readonly #key: readonly string[]
  readonly #summed: readonly string[]
  readonly #rows = new Map<string, SummedRow>()
  /** Additions by a bit mask of their blocks. */
  readonly #additions = new Map<number, Addition>()

  constructor(db: DatabaseSync, table: string, key: readonly string[], summed: readonly string[]) {
    this.#db = db
    this.#table = table
    this.#key = key
    this.#summed = summed
  }

  /** Adds to the row with this key. */
  add(key: SummedRow['key'], sums: readonly number[]): void {
    // NUL separates the parts, because no text contains it.
    const name = key.join('\0')
    const row = this.#rows.get(name)
    if (!row) this.#rows.set(name, { key, sums: [...sums] })
    else for (let i = 0; i < sums.length; i += 1) row.sums[i]! += sums[i]!
  }

  /** Writes the accumulated sums. Most rows exist, and an upsert would first build a new row each time. */
  write(): void {
    for (const { key, sums } of this.#rows.values()) {
      const { update, insert, columns } = this.#additionOf(sums)
      const values = [...columns.map((column) => sums[column]!), ...key]
      if (update.run(...values).changes === 0) insert.run(...values)
    }
    this.#rows.clear()
  }

  /** Discards the accumulated sums. */
  discard(): void {
    this.#rows.clear()
  }

  #additionOf(sums: readonly number[]): Addition {
    // The first block is always included, so that no statement is without columns.
    let blocks = 1
    for (let i = BLOCK; i < sums.length; i += 1) if (sums[i] !== 0) blocks |= 1 << (i / BLOCK)
    let addition = this.#additions.get(blocks)
    if (!addition) {
      if (this.#additions.size >= MAX_STATEMENTS) this.#additions.clear()
      this.#additions.set(blocks, (addition = this.#prepare(blocks)))
    }
    return addition
  }

  #prepare(blocks: number): Addition {
    const columns = [...this.#summed.keys()].filter((index) => (blocks & (1 << (index / BLOCK))) !== 0)
    const names = columns.map((index) => this.#summed[index]!)
    const changes = names.map((name) => `${name} = ${name} + ${AS_INTEGER}`)
    const wanted = this.#key.map((name) => `${name} = ?`)
    const values = [...names.map(() => AS_INTEGER), ...this.#key.map(() => '?')]
    return {
      update: this.#db.prepare(
        `UPDATE ${this.#table} SET ${changes.join(', ')} WHERE ${wanted.join(' AND ')}`,
      ),
      insert: this.#db.prepare(
        `INSERT INTO ${this.#table} (${[...names, ...this.#key].join(', ')}) VALUES (${values.join(', ')})`,
      ),
      columns,
    }
  }
}

// Keeps the sums integers, because the driver binds every number as a double.
const AS_INTEGER = 'CAST(? AS INTEGER)'
