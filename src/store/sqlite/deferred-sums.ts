import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { SettledCall } from '../../domain/records/usage.ts'
import {
  addCall,
  dimensionsIn,
  SLOT_MS,
  SLOTS_PER_DAY,
  SUM_COLUMNS,
  SUM_KEY,
  SUM_KINDS,
} from '../sum-kinds.ts'

/** Maximum number of rows of one note. */
const NOTE_ROWS = 50
/**
 * Number of half hours by all dimensions after which a part ends; with all sums to which they are added,
 * about 2 ms.
 */
const PART_ROWS = 50
/** Number of notes after which a part ends, even if they have few rows. */
const PART_NOTES = 200

/** Result of `DeferredSums.sumUp`. */
export interface SumProgress {
  /** Number of the newest note that was there. */
  readonly through: number
  /** Whether there are calls, in notes up to that one, that are not summed up. */
  readonly isBehind: boolean
}

interface Note {
  readonly note: number
  /** JSON: `SlotRow[]`. */
  readonly sums: string
}

type SlotKey = readonly [
  slot: number,
  userId: number,
  tokenId: number,
  model: string,
  channel: string,
  group: string,
  serviceTier: string,
  region: string,
]

/** Key of the half hours by all dimensions, and the amounts to add to their sums. */
type SlotRow = readonly [SlotKey, number[]]

/**
 * Sums of usage. The transaction that settles calls only writes a note, one row of `unsummed_calls`, with
 * what they add to the half hours by all dimensions. A later transaction adds the notes to the sums of each
 * kind and removes them. So in every state of the database, every settled call is either in the sums or in a
 * note. Nothing is kept in memory between transactions, apart from an estimate of the number of noted rows.
 */
export class DeferredSums {
  readonly #rows: SummedRows
  readonly #insertNote: StatementSync
  readonly #notes: StatementSync
  readonly #newestNote: StatementSync
  readonly #deleteNotes: StatementSync
  /** Rows of the open transaction that are not noted. */
  readonly #open = new Map<string, SlotRow>()
  #waiting: number

  constructor(db: DatabaseSync) {
    this.#rows = new SummedRows(db, 'usage_sums', SUM_KEY, SUM_COLUMNS)
    this.#insertNote = db.prepare('INSERT INTO unsummed_calls (sums) VALUES (?)')
    this.#notes = db.prepare(
      `SELECT rowid AS note, sums FROM unsummed_calls ORDER BY rowid LIMIT ${PART_NOTES + 1}`,
    )
    this.#newestNote = db.prepare('SELECT coalesce(max(rowid), 0) AS note FROM unsummed_calls')
    this.#deleteNotes = db.prepare('DELETE FROM unsummed_calls WHERE rowid <= CAST(? AS INTEGER)')
    const { rows } = db
      .prepare('SELECT coalesce(sum(json_array_length(sums)), 0) AS rows FROM unsummed_calls')
      .get() as { readonly rows: number }
    this.#waiting = rows
  }

  /** Number of noted rows: an estimate after a rollback, but 0 only if there are none. */
  get waiting(): number {
    return this.#waiting
  }

  /** Adds a call that the open transaction settles. */
  add(call: SettledCall): void {
    const { user_id, token_id, model, channel, group, service_tier = '', region = '', ended_ms } = call
    const slot = Math.floor(ended_ms / SLOT_MS)
    const name = nameOf(slot, token_id, model, channel, group, service_tier, region)
    let row = this.#open.get(name)
    if (!row) {
      row = [[slot, user_id, token_id, model, channel, group, service_tier, region], SUM_COLUMNS.map(() => 0)]
      this.#open.set(name, row)
    }
    addCall(row[1], call)
  }

  /** Writes the notes of the calls that were added. Call it before the transaction ends. */
  writeNotes(): void {
    if (this.#open.size === 0) return
    const rows: readonly SlotRow[] = [...this.#open.values()]
    this.#waiting += rows.length
    for (let i = 0; i < rows.length; i += NOTE_ROWS)
      this.#insertNote.run(JSON.stringify(rows.length > NOTE_ROWS ? rows.slice(i, i + NOTE_ROWS) : rows))
    this.discard()
  }

  /** Discards what was added since the last notes, after a rollback. */
  discard(): void {
    this.#open.clear()
  }

  /**
   * Adds a part of the notes to the sums, the oldest first. The part is small enough for calls to wait for
   * it. Call it after `writeNotes`. `through` is the last note that the caller needs in the sums; by default
   * the newest.
   */
  sumUp(through?: number): SumProgress {
    const last = through ?? this.#newest()
    try {
      return this.#sumPart(last)
    } finally {
      this.#rows.discard()
    }
  }

  #sumPart(through: number): SumProgress {
    let done = 0
    let notes = 0
    let added = 0
    let isBehind = false
    const slots = new Map<string, SlotRow>()
    for (const { note, sums } of this.#notes.iterate() as Iterable<unknown> as Iterable<Note>) {
      if (notes >= PART_NOTES || slots.size >= PART_ROWS) {
        isBehind = note <= through
        break
      }
      const rows = JSON.parse(sums) as readonly SlotRow[]
      for (const row of rows) addRow(slots, row)
      added += rows.length
      notes += 1
      done = note
    }
    if (done > 0) {
      for (const row of slots.values()) this.#addToKinds(row)
      this.#rows.write()
      this.#deleteNotes.run(done)
    }
    this.#waiting = this.#newest() === 0 ? 0 : Math.max(1, this.#waiting - added)
    return { through, isBehind }
  }

  #newest(): number {
    return (this.#newestNote.get() as { readonly note: number }).note
  }

  // Called with the sums of a half hour, so that the rows of each kind are not written for every call.
  #addToKinds([[slot, user_id, token_id, model, channel, group, service_tier, region], sums]: SlotRow): void {
    const values = { user_id, token_id, model, channel, group_name: group, service_tier, region }
    for (const kind of SUM_KINDS) {
      const start = kind.unit === 'slot' ? slot : Math.floor(slot / SLOTS_PER_DAY)
      this.#rows.add([kind.kind, start, ...dimensionsIn(kind, values)], sums)
    }
  }
}

function addRow(slots: Map<string, SlotRow>, row: SlotRow): void {
  const [[slot, , ...others], sums] = row
  const name = nameOf(slot, ...others)
  const present = slots.get(name)
  if (present) addAll(present[1], sums)
  else slots.set(name, row)
}

function addAll(sums: number[], values: readonly number[]): void {
  for (let i = 0; i < values.length; i += 1) sums[i]! += values[i]!
}

// NUL separates the parts, because no text contains it. The user follows from the token.
function nameOf(slot: number, token_id: number, ...texts: readonly string[]): string {
  return `${slot}\0${token_id}\0${texts.join('\0')}`
}

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
class SummedRows {
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
