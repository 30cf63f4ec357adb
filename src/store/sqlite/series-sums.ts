import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { SettledCall } from '../ledger-writes.ts'
import type { UsageLogRow } from '../schema.ts'
import { usageFromRow } from '../usage-from-row.ts'
import {
  addPoint,
  LATENCY_COLUMNS,
  POINT_COLUMNS,
  POINT_TABLES,
  SLOT_MS,
  SLOTS_PER_DAY,
} from '../usage-points.ts'
import { SummedRows } from './summed-rows.ts'

/** Most calls of one note. */
const NOTE_CALLS = 50
/** Rows of `usage_slots` after which a part ends: with the rows derived from them, about 2 ms of work. */
const PART_ROWS = 50
/** Calls after which a part ends, however few rows they share. */
const PART_CALLS = 200

/** Result of `SeriesSums.sumUp`. */
export interface SumProgress {
  /** Number of the newest note that was there. */
  readonly through: number
  /** Whether calls of notes up to that one are not summed up. */
  readonly isBehind: boolean
}

interface Note {
  readonly note: number
  readonly answered: number
  readonly ids: string
}

/**
 * Sums for series. The transaction that settles calls only notes their ids in `unsummed_calls`; another one
 * later adds the noted rows of the log to the sums and removes the notes. So every call of the log is either
 * in the sums or noted, in every state that the database can be in. Nothing is kept in memory from one
 * transaction to the next, apart from an estimate of what is noted.
 */
export class SeriesSums {
  /** In the order of `POINT_TABLES`. */
  readonly #tables: readonly SummedRows[]
  readonly #insertNote: StatementSync
  readonly #notes: StatementSync
  readonly #newestNote: StatementSync
  readonly #notedCalls: StatementSync
  readonly #deleteNotes: StatementSync
  /** Calls of the open transaction that are not noted. */
  #answered: string[] = []
  #unanswered: string[] = []
  #waiting: number

  constructor(db: DatabaseSync) {
    this.#tables = POINT_TABLES.map(
      ({ name, key }) => new SummedRows(db, name, key, [...POINT_COLUMNS, ...LATENCY_COLUMNS]),
    )
    this.#insertNote = db.prepare('INSERT INTO unsummed_calls (answered, ids) VALUES (CAST(? AS INTEGER), ?)')
    this.#notes = db.prepare(
      `SELECT rowid AS note, answered, ids FROM unsummed_calls ORDER BY rowid LIMIT ${PART_CALLS}`,
    )
    this.#newestNote = db.prepare('SELECT coalesce(max(rowid), 0) AS note FROM unsummed_calls')
    this.#notedCalls = db.prepare('SELECT l.* FROM json_each(?) i CROSS JOIN usage_log l ON l.id = i.value')
    this.#deleteNotes = db.prepare('DELETE FROM unsummed_calls WHERE rowid <= CAST(? AS INTEGER)')
    const { calls } = db
      .prepare('SELECT coalesce(sum(json_array_length(ids)), 0) AS calls FROM unsummed_calls')
      .get() as { readonly calls: number }
    this.#waiting = calls
  }

  /** Number of noted calls: an estimate after a rollback, but 0 only if there are none. */
  get waiting(): number {
    return this.#waiting
  }

  /** Adds a call that the open transaction settles. */
  add({ id, delivered }: SettledCall): void {
    ;(delivered ? this.#answered : this.#unanswered).push(id)
  }

  /** Notes the calls that were added. Call before the transaction's end. */
  writeNotes(): void {
    this.#note(1, this.#answered)
    this.#note(0, this.#unanswered)
    this.discard()
  }

  /** Discards what was added since the last notes, after a rollback. */
  discard(): void {
    if (this.#answered.length > 0) this.#answered = []
    if (this.#unanswered.length > 0) this.#unanswered = []
  }

  /**
   * Adds a part of the noted calls to the sums, the oldest first. The part is so small that other calls can
   * wait for it. Call after `writeNotes`. `through`: the note up to which the caller wants sums; the newest
   * one unless given.
   */
  sumUp(through?: number): SumProgress {
    const last = through ?? this.#newest()
    try {
      return this.#sumPart(last)
    } finally {
      for (const rows of this.#tables) rows.discard()
    }
  }

  #sumPart(through: number): SumProgress {
    let done = 0
    let calls = 0
    let isBehind = false
    for (const { note, answered, ids } of this.#notes.iterate() as Iterable<unknown> as Iterable<Note>) {
      if (calls >= PART_CALLS || (this.#tables[0]?.size ?? 0) >= PART_ROWS) {
        isBehind = note <= through
        break
      }
      calls += this.#sumNoted(answered === 1, ids)
      done = note
    }
    if (done > 0) {
      this.#deriveTables()
      for (const rows of this.#tables) rows.write()
      this.#deleteNotes.run(done)
    }
    this.#waiting = this.#newest() === 0 ? 0 : Math.max(1, this.#waiting - calls)
    return { through, isBehind }
  }

  #newest(): number {
    return (this.#newestNote.get() as { readonly note: number }).note
  }

  #note(answered: 0 | 1, ids: readonly string[]): void {
    this.#waiting += ids.length
    for (let i = 0; i < ids.length; i += NOTE_CALLS) {
      const some = ids.length > NOTE_CALLS ? ids.slice(i, i + NOTE_CALLS) : ids
      this.#insertNote.run(answered, JSON.stringify(some))
    }
  }

  #sumNoted(delivered: boolean, ids: string): number {
    let calls = 0
    for (const row of this.#notedCalls.iterate(ids) as Iterable<unknown> as Iterable<UsageLogRow>) {
      this.#sum(row, delivered)
      calls += 1
    }
    return calls
  }

  #sum(call: UsageLogRow, delivered: boolean): void {
    const { user_id, token_id, model, channel, group_name } = call
    const slot = Math.floor(call.ended_ms / SLOT_MS)
    // NUL separates the parts, because no text contains it. The user follows from the token.
    const name = `${slot}\0${token_id}\0${model}\0${channel}\0${group_name}`
    const sums = this.#tables[0]?.sumsOf(name, [slot, user_id, token_id, model, channel, group_name])
    if (!sums) return
    addPoint(sums, {
      delivered,
      reason: call.reason,
      quota: call.quota,
      usage: usageFromRow(call),
      durationMs: call.duration_ms,
      firstByteMs: call.first_byte_ms,
    })
  }

  // Once for each row of `usage_slots`, not for each call.
  #deriveTables(): void {
    const [slots, slotRoutes, dayRoutes, dayKeys] = this.#tables
    if (!slots || !slotRoutes || !dayRoutes || !dayKeys) return
    for (const { key, sums } of slots.rows) {
      const [slot, userId, tokenId, ...route] = key as [number, number, number, string, string, string]
      const day = Math.floor(slot / SLOTS_PER_DAY)
      const name = route.join('\0')
      addAll(slotRoutes.sumsOf(`${slot}\0${name}`, [slot, ...route]), sums)
      addAll(dayRoutes.sumsOf(`${day}\0${name}`, [day, ...route]), sums)
      addAll(dayKeys.sumsOf(`${day}\0${tokenId}`, [day, userId, tokenId]), sums)
    }
  }
}

function addAll(sums: number[], values: readonly number[]): void {
  for (let i = 0; i < values.length; i += 1) sums[i]! += values[i]!
}
