import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import type { HoldOpening } from '../ledger-writes.ts'
import { boundValues } from './bound-values.ts'

/** Prepared statements on holds, for either kind of file. */
export type HoldStatements = Readonly<
  Record<'insertHold' | 'growHold' | 'markProgress' | 'deleteHold' | 'orphans', StatementSync>
>

/** Prepares the statements. Sums are cast, because the driver binds every number as a double. */
export function prepareHolds(db: DatabaseSync): HoldStatements {
  return {
    insertHold: db.prepare(
      `INSERT INTO holds (id, owner, token_id, user_id, amount, prompt_amount, progress_amount, started_ms, model, channel,
         group_name, stream, price_version)
       VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?)`,
    ),
    growHold: db.prepare('UPDATE holds SET amount = amount + CAST(? AS INTEGER) WHERE id = ?'),
    markProgress: db.prepare(
      'UPDATE holds SET progress_amount = max(progress_amount, CAST(? AS INTEGER)) WHERE id = ?',
    ),
    deleteHold: db.prepare('DELETE FROM holds WHERE id = ?'),
    orphans: db.prepare('SELECT * FROM holds WHERE owner <> ? LIMIT ?'),
  }
}

/** Lists the parameters of `insertHold`. */
export function holdValues(opening: HoldOpening): readonly SQLInputValue[] {
  return boundValues([
    opening.id,
    opening.owner,
    opening.tokenId,
    opening.userId,
    opening.amount,
    opening.promptAmount,
    opening.startedMs,
    opening.model,
    opening.channel,
    opening.group,
    opening.stream ? 1 : 0,
    opening.priceVersion,
  ])
}
