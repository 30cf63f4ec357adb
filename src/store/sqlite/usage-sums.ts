import type { DatabaseSync } from 'node:sqlite'
import type { SettledCall } from '../../domain/records/usage.ts'
import { addCounts, COUNT_COLUMNS } from '../usage-counts.ts'
import { isFailed } from '../usage-points.ts'
import { SummedRows } from './summed-rows.ts'

const DAY_MS = 86_400_000

const KEY = ['day', 'user_id', 'token_id', 'model', 'channel', 'group_name']

const SUMMED = ['requests', 'failed', ...COUNT_COLUMNS, 'quota']

/** Daily sums within the open transaction: accumulates settlements; `write` writes each row once. */
export class UsageSums {
  readonly #days: SummedRows

  constructor(db: DatabaseSync) {
    this.#days = new SummedRows(db, 'usage_days', KEY, SUMMED)
  }

  add(call: SettledCall): void {
    const { user_id, token_id, model, channel, group, ended_ms } = call
    const day = Math.floor(ended_ms / DAY_MS)
    // NUL separates the parts, because no text contains it. The user follows from the token.
    const name = `${day}\0${token_id}\0${model}\0${channel}\0${group}`
    const sums = this.#days.sumsOf(name, [day, user_id, token_id, model, channel, group])
    sums[0]! += call.delivered ? 1 : 0
    sums[1]! += isFailed(call.reason) ? 1 : 0
    addCounts(sums, 2, call.usage)
    sums[SUMMED.length - 1]! += call.quota
  }

  /** Writes the accumulated sums. */
  write(): void {
    this.#days.write()
  }

  /** Discards the accumulated sums, for a rollback. */
  discard(): void {
    this.#days.discard()
  }
}
