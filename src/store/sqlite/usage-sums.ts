import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { SettledCall } from '../ledger-writes.ts'
import { COUNT_COLUMNS, countsOf } from '../usage-counts.ts'

const DAY_MS = 86_400_000

const KEY = ['day', 'user_id', 'token_id', 'model', 'channel', 'group_name']

const SUMMED = ['requests', ...COUNT_COLUMNS, 'quota']

/** Key and sums of a row, in the order of `KEY` and `SUMMED`. */
interface DaySums {
  readonly key: readonly (number | string)[]
  readonly sums: number[]
}

/** Daily sums within the open transaction: accumulates settlements; `write` writes each row once. */
export class UsageSums {
  readonly #upsert: StatementSync
  readonly #rows = new Map<string, DaySums>()

  constructor(db: DatabaseSync) {
    // Casts keep the sums integers, because the driver binds every number as a double.
    const values = [...KEY.map(() => '?'), ...SUMMED.map(() => 'CAST(? AS INTEGER)')]
    this.#upsert = db.prepare(
      `INSERT INTO usage_days (${[...KEY, ...SUMMED].join(', ')}) VALUES (${values.join(', ')})
       ON CONFLICT (${KEY.join(', ')}) DO UPDATE SET ${SUMMED.map((name) => `${name} = ${name} + excluded.${name}`).join(', ')}`,
    )
  }

  add(call: SettledCall): void {
    const { model, channel, group, tokenId } = call
    const day = Math.floor(call.endedMs / DAY_MS)
    // NUL separates the parts, because no text contains it. The user follows from the token.
    const name = `${day}\0${tokenId}\0${model}\0${channel}\0${group}`
    let row = this.#rows.get(name)
    if (!row) {
      row = { key: [day, call.userId, tokenId, model, channel, group], sums: SUMMED.map(() => 0) }
      this.#rows.set(name, row)
    }
    const used = [call.delivered ? 1 : 0, ...countsOf(call.usage), call.quota]
    for (const [i, value] of used.entries()) row.sums[i]! += value
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
