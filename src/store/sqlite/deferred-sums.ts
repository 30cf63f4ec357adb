import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { SettledCall } from '../../domain/records/usage.ts'
import {
  addCallToSums,
  dimensionValuesOfCall,
  SLOT_MS,
  SLOTS_PER_DAY,
  SUM_COLUMNS,
  USAGE_SUMS_KEY,
  SUM_KINDS,
} from '../sum-kinds.ts'

/** Maximum number of half hours with their dimensions in one note (a row of `unsummed_calls`). */
const NOTE_ROWS = 50
/** Number of half hours with their dimensions after which `sumUp` ends, so that it takes about 2 ms. */
const PART_ROWS = 50
/** Number of notes (see `NOTE_ROWS`) after which `sumUp` ends, even if they contain few rows. */
const PART_NOTES = 200

/** How far `DeferredSums.sumUp` has added calls to the sums of usage. */
export interface SumProgress {
  /** Number of the last note (a row of `unsummed_calls`) that was to be added to the sums. */
  readonly through: number
  /** Whether some notes (rows of `unsummed_calls`) up to `through` still have to be added. */
  readonly isBehind: boolean
}

interface Note {
  readonly note: number
  /** The amounts to add to the sums, as JSON of `SlotRow[]`. */
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

/** A half hour with all dimensions as the key, and the amounts to add to the sums of this key. */
type SlotRow = readonly [SlotKey, number[]]

/**
 * Adds calls to the sums of usage, after their transaction. The transaction that settles calls only writes a
 * note: a row of `unsummed_calls` with the amounts for each half hour and all dimensions. A later transaction
 * adds the notes to the sums of each kind, and removes them. So at any time, every settled call is either in
 * the sums or in a note. Nothing is kept in memory between transactions, except an estimate of the number of
 * rows in notes.
 */
export class DeferredSums {
  readonly #rows: SummedRows
  readonly #insertNote: StatementSync
  readonly #notes: StatementSync
  readonly #newestNote: StatementSync
  readonly #deleteNotes: StatementSync
  /**
   * Amounts of the calls that the open transaction settles, as long as they are not in a note, by half hour
   * and dimensions.
   */
  readonly #open = new Map<string, SlotRow>()
  #waiting: number

  constructor(db: DatabaseSync) {
    this.#rows = new SummedRows(db, 'usage_sums', USAGE_SUMS_KEY, SUM_COLUMNS)
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

  /**
   * Number of rows in all notes (in `unsummed_calls`) that are not in the sums yet. After a rollback it is an
   * estimate, but it is 0 only if there are none.
   */
  get waiting(): number {
    return this.#waiting
  }

  /** Adds a call that the open transaction settles to the next note (row of `unsummed_calls`). */
  add(call: SettledCall): void {
    const { user_id, token_id, model, channel, group, service_tier = '', region = '', ended_ms } = call
    const slot = Math.floor(ended_ms / SLOT_MS)
    const name = nameOf(slot, token_id, model, channel, group, service_tier, region)
    let row = this.#open.get(name)
    if (!row) {
      row = [[slot, user_id, token_id, model, channel, group, service_tier, region], SUM_COLUMNS.map(() => 0)]
      this.#open.set(name, row)
    }
    addCallToSums(row[1], call)
  }

  /**
   * Writes notes (rows of `unsummed_calls`) for the calls that `add` was given. Call it before the
   * transaction ends.
   */
  writeNotes(): void {
    if (this.#open.size === 0) return
    const rows: readonly SlotRow[] = [...this.#open.values()]
    this.#waiting += rows.length
    for (let i = 0; i < rows.length; i += NOTE_ROWS)
      this.#insertNote.run(JSON.stringify(rows.length > NOTE_ROWS ? rows.slice(i, i + NOTE_ROWS) : rows))
    this.discard()
  }

  /**
   * Discards the calls that are not in a note (row of `unsummed_calls`) yet, because their transaction was
   * rolled back.
   */
  discard(): void {
    this.#open.clear()
  }

  /**
   * Adds some of the notes (rows of `unsummed_calls`) to the sums, the oldest first. It takes so little time
   * that calls can wait for it. Call it after `writeNotes`. `through` is the last note that the caller needs
   * in the sums; the newest one by default.
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

  // Called once for each half hour and its dimensions, so that the rows of each kind of sums are not written
  // for every call.
  #addToKinds([[slot, user_id, token_id, model, channel, group, service_tier, region], sums]: SlotRow): void {
    const values = { user_id, token_id, model, channel, group_name: group, service_tier, region }
    for (const kind of SUM_KINDS) {
      const start = kind.unit === 'slot' ? slot : Math.floor(slot / SLOTS_PER_DAY)
      this.#rows.add([kind.kind, start, ...dimensionValuesOfCall(kind, values)], sums)
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

// NUL can separate the parts, because no text contains it. The user's id is left out, because each token
// belongs to one user.
function nameOf(slot: number, token_id: number, ...texts: readonly string[]): string {
  return `${slot}\0${token_id}\0${texts.join('\0')}`
}

/** A row of sums: the values of its key, and its sums. */
interface SummedRow {
  readonly key: readonly (number | string)[]
  readonly sums: number[]
}

/**
 * The statements that add amounts to some columns of a row: `update` for an existing row, `insert` for a new
 * one.
 */
interface Addition {
  readonly update: StatementSync
  readonly insert: StatementSync
  readonly columns: readonly number[]
}

/**
 * Number of columns that are updated together. Many amounts are 0, so only the blocks with other amounts are
 * updated. Choosing single columns would need too many different statements.
 */
const BLOCK = 4
/**
 * Maximum number of cached statements. There is one for each combination of blocks, which depends on the
 * latencies of the calls.
 */
const MAX_STATEMENTS = 100

/** Adds up amounts for the rows of a table of sums, so that `write` writes each row only once. */
class SummedRows {
  readonly #db: DatabaseSync
  readonly #table: string
  readonly #key: readonly string[]
  readonly #summed: readonly string[]
  readonly #rows = new Map<string, SummedRow>()
  /** The statements of each combination of blocks, by a bit mask of the blocks that they update. */
  readonly #additions = new Map<number, Addition>()

  constructor(db: DatabaseSync, table: string, key: readonly string[], summed: readonly string[]) {
    this.#db = db
    this.#table = table
    this.#key = key
    this.#summed = summed
  }

  /** Adds amounts to the row with this key. */
  add(key: SummedRow['key'], sums: readonly number[]): void {
    // NUL can separate the parts, because no text contains it.
    const name = key.join('\0')
    const row = this.#rows.get(name)
    if (!row) this.#rows.set(name, { key, sums: [...sums] })
    else for (let i = 0; i < sums.length; i += 1) row.sums[i]! += sums[i]!
  }

  /**
   * Writes the amounts that were added up. Uses an update first, because most rows exist, and an upsert would
   * build a new row each time.
   */
  write(): void {
    for (const { key, sums } of this.#rows.values()) {
      const { update, insert, columns } = this.#additionOf(sums)
      const values = [...columns.map((column) => sums[column]!), ...key]
      if (update.run(...values).changes === 0) insert.run(...values)
    }
    this.#rows.clear()
  }

  /** Discards the amounts that were added up in memory. */
  discard(): void {
    this.#rows.clear()
  }

  #additionOf(sums: readonly number[]): Addition {
    // The first block is always included, because a statement needs at least one column.
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

// The driver binds every number as a double, so amounts are cast to integers.
const AS_INTEGER = 'CAST(? AS INTEGER)'
