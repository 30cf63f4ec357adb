import type { DatabaseSync } from 'node:sqlite'
import type { SettledCall } from '../ledger-writes.ts'
import { COUNT_COLUMNS, countsOf } from '../usage-counts.ts'
import { LATENCY_COLUMNS, POINT_COLUMNS, POINT_TABLES, pointOf, SLOT_MS } from '../usage-points.ts'
import { SummedRows } from './summed-rows.ts'

const DAY_MS = 86_400_000

const KEY = ['day', 'user_id', 'token_id', 'model', 'channel', 'group_name']

const SUMMED = ['requests', 'failed', ...COUNT_COLUMNS, 'quota']

/**
 * Daily sums, and the sums for series, within the open transaction: accumulates settlements; `write` writes
 * each row once.
 */
export class UsageSums {
  readonly #days: SummedRows
  readonly #points: readonly SummedRows[]

  constructor(db: DatabaseSync) {
    this.#days = new SummedRows(db, 'usage_days', KEY, SUMMED)
    this.#points = POINT_TABLES.map(
      ({ name, key }) => new SummedRows(db, name, key, [...POINT_COLUMNS, ...LATENCY_COLUMNS]),
    )
  }

  add(call: SettledCall): void {
    const { userId, tokenId, model, channel, group, endedMs } = call
    const day = Math.floor(endedMs / DAY_MS)
    const slot = Math.floor(endedMs / SLOT_MS)
    const point = pointOf(call)
    const [requests = 0, failed = 0] = point
    // NUL separates the parts, because no text contains it. The user follows from the token.
    const route = `${model}\0${channel}\0${group}`
    this.#days.add(
      `${day}\0${tokenId}\0${route}`,
      [day, userId, tokenId, model, channel, group],
      [requests, failed, ...countsOf(call.usage), call.quota],
    )
    const [slots, slotRoutes, dayRoutes, dayKeys] = this.#points
    slots?.add(`${slot}\0${tokenId}\0${route}`, [slot, userId, tokenId, model, channel, group], point)
    slotRoutes?.add(`${slot}\0${route}`, [slot, model, channel, group], point)
    dayRoutes?.add(`${day}\0${route}`, [day, model, channel, group], point)
    dayKeys?.add(`${day}\0${tokenId}`, [day, userId, tokenId], point)
  }

  /** Writes the accumulated sums. */
  write(): void {
    this.#days.write()
    for (const rows of this.#points) rows.write()
  }

  /** Discards the accumulated sums, for a rollback. */
  discard(): void {
    this.#days.discard()
    for (const rows of this.#points) rows.discard()
  }
}
