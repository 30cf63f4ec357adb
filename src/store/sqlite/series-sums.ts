import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { SettledCall } from '../ledger-writes.ts'
import type { UsageLogRow } from '../schema.ts'
import { usageFromRow } from '../usage-from-row.ts'
import {
  addPoint,
  LATENCY_COLUMNS,
  POINT_COLUMNS,
  POINT_TABLES,
  type PointCall,
  SLOT_MS,
  SLOTS_PER_DAY,
} from '../usage-points.ts'
import { SummedRows } from './summed-rows.ts'

/** Longest time that sums wait for further calls while calls are settled. */
const WRITE_MS = 10_000
/** Most calls that wait, which bounds the work of a start after a crash. */
const MAX_CALLS = 20_000
/** Most rows of `usage_slots` that wait, which bounds the time of the commit that writes them. */
const MAX_ROWS = 2000

/** Place of a call in the sums. */
type PlacedCall = PointCall &
  Pick<SettledCall, 'userId' | 'tokenId' | 'model' | 'channel' | 'group' | 'endedMs'>

/**
 * Sums for series. They are kept in memory and written every ten seconds, so that a commit does not pay for
 * them. Until then, each commit notes the ids of its calls in `unsummed_calls`: the transaction that writes
 * the sums removes the notes, and after a crash or a rollback the sums are made from the noted rows of the
 * log. So every call of the log is either in the sums or noted, in every state that the database can be in.
 */
export class SeriesSums {
  /** In the order of `POINT_TABLES`. */
  readonly #tables: readonly SummedRows[]
  readonly #insertNote: StatementSync
  readonly #notedCalls: StatementSync
  readonly #deleteNotes: StatementSync
  /** Calls of the open transaction that are not noted. */
  #answered: string[] = []
  #unanswered: string[] = []
  /** Whether memory has the sums of all noted calls. */
  #isWhole = false
  #calls = 0
  #writtenMs = 0

  constructor(db: DatabaseSync) {
    this.#tables = POINT_TABLES.map(
      ({ name, key }) => new SummedRows(db, name, key, [...POINT_COLUMNS, ...LATENCY_COLUMNS]),
    )
    this.#insertNote = db.prepare('INSERT INTO unsummed_calls (answered, ids) VALUES (CAST(? AS INTEGER), ?)')
    this.#notedCalls = db.prepare(
      `SELECT l.*, n.answered FROM unsummed_calls n CROSS JOIN json_each(n.ids) i
       CROSS JOIN usage_log l ON l.id = i.value`,
    )
    this.#deleteNotes = db.prepare('DELETE FROM unsummed_calls')
  }

  /** Whether memory has sums that are not written. */
  get isWaiting(): boolean {
    return this.#calls > 0
  }

  /** Adds a call that the open transaction settles. */
  add(call: SettledCall): void {
    ;(call.delivered ? this.#answered : this.#unanswered).push(call.id)
    if (this.#isWhole) this.#sum(call)
  }

  /** Writes the sums if it is time, else the notes. Call before the transaction's end. */
  finish(): void {
    if (this.#answered.length + this.#unanswered.length === 0) return
    const isDue =
      !this.#isWhole ||
      this.#calls >= MAX_CALLS ||
      (this.#tables[0]?.size ?? 0) >= MAX_ROWS ||
      performance.now() - this.#writtenMs >= WRITE_MS
    if (isDue) this.write()
    else this.#writeNotes()
  }

  /** Writes the sums of all calls that were settled so far. */
  write(): void {
    if (!this.#isWhole) {
      this.#writeNotes()
      this.#sumNoted()
    }
    this.#writtenMs = performance.now()
    if (this.#calls === 0) return
    this.#deriveTables()
    for (const rows of this.#tables) rows.write()
    this.#deleteNotes.run()
    this.#answered = []
    this.#unanswered = []
    this.#calls = 0
  }

  /** Forgets what memory has, after a rollback: the notes tell what to sum up. */
  forget(): void {
    for (const rows of this.#tables) rows.discard()
    this.#answered = []
    this.#unanswered = []
    this.#calls = 0
    this.#isWhole = false
  }

  #writeNotes(): void {
    if (this.#answered.length > 0) this.#insertNote.run(1, JSON.stringify(this.#answered))
    if (this.#unanswered.length > 0) this.#insertNote.run(0, JSON.stringify(this.#unanswered))
    this.#answered = []
    this.#unanswered = []
  }

  #sumNoted(): void {
    for (const row of this.#notedCalls.iterate() as Iterable<unknown>) {
      const { answered, ...call } = row as UsageLogRow & { readonly answered: number }
      this.#sum({
        delivered: answered === 1,
        reason: call.reason,
        quota: call.quota,
        usage: usageFromRow(call),
        durationMs: call.duration_ms,
        firstByteMs: call.first_byte_ms,
        userId: call.user_id,
        tokenId: call.token_id,
        model: call.model,
        channel: call.channel,
        group: call.group_name,
        endedMs: call.ended_ms,
      })
    }
    this.#isWhole = true
  }

  #sum(call: PlacedCall): void {
    const { userId, tokenId, model, channel, group, endedMs } = call
    const slot = Math.floor(endedMs / SLOT_MS)
    // NUL separates the parts, because no text contains it. The user follows from the token.
    const sums = this.#tables[0]?.sumsOf(`${slot}\0${tokenId}\0${model}\0${channel}\0${group}`, [
      slot,
      userId,
      tokenId,
      model,
      channel,
      group,
    ])
    if (sums) addPoint(sums, call)
    this.#calls += 1
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
