import type { DatabaseSync } from 'node:sqlite'
import type { SettledCall } from '../ledger-writes.ts'
import { COUNT_COLUMNS, countsOf } from '../usage-counts.ts'
import {
  addPoint,
  isFailed,
  LATENCY_COLUMNS,
  POINT_COLUMNS,
  POINT_TABLES,
  SLOT_MS,
  SLOTS_PER_DAY,
} from '../usage-points.ts'
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
  /** In the order of `POINT_TABLES`. */
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
    // NUL separates the parts, because no text contains it. The user follows from the token.
    const place = `${tokenId}\0${model}\0${channel}\0${group}`
    const sums = this.#days.sumsOf(`${day}\0${place}`, [day, userId, tokenId, model, channel, group])
    const counts = countsOf(call.usage)
    sums[0]! += call.delivered ? 1 : 0
    sums[1]! += isFailed(call.reason) ? 1 : 0
    for (let i = 0; i < counts.length; i += 1) sums[i + 2]! += counts[i]!
    sums[SUMMED.length - 1]! += call.quota
    const point = this.#points[0]?.sumsOf(`${slot}\0${place}`, [slot, userId, tokenId, model, channel, group])
    if (point) addPoint(point, call)
  }

  /** Writes the accumulated sums. */
  write(): void {
    this.#addUp()
    this.#days.write()
    for (const rows of this.#points) rows.write()
  }

  /** Discards the accumulated sums, for a rollback. */
  discard(): void {
    this.#days.discard()
    for (const rows of this.#points) rows.discard()
  }

  // Once for each half hour and key of a transaction, not for each call.
  #addUp(): void {
    const [slots, slotRoutes, dayRoutes, dayKeys] = this.#points
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
