import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import { type HoldOpening, PARKED, type ParkedHold } from '../ledger-writes.ts'
import type { Database } from '../schema.ts'
import { boundValues } from './bound-values.ts'

/** Prepared statements on holds, for either kind of file. */
export type HoldStatements = Readonly<
  Record<
    | 'insertHold'
    | 'insertProbe'
    | 'growHold'
    | 'markProgress'
    | 'parkHold'
    | 'parkedHolds'
    | 'deleteHold'
    | 'orphans'
    | 'holdsOf',
    StatementSync
  >
>

/**
 * Prepares the statements. Sums are cast, because the driver binds every number as a double. `hasTokens`:
 * holds refer to a table of tokens; without any token in it, there is nothing to probe for.
 */
export function prepareHolds(
  db: DatabaseSync,
  { hasTokens }: { readonly hasTokens: boolean },
): HoldStatements {
  const owner = hasTokens ? 'id, user_id' : '0, 0'
  return {
    insertProbe: db.prepare(
      `INSERT INTO holds (id, owner, token_id, user_id, amount, prompt_amount, progress_amount, started_ms, model, channel,
         group_name, stream, price_version, kind, budgets, requested_model)
       SELECT '', 'probe', ${owner}, 0, 0, 0, 0, '', '', '', 0, '', '', '', '' ${hasTokens ? 'FROM tokens LIMIT 1' : ''}`,
    ),
    insertHold: db.prepare(
      `INSERT INTO holds (id, owner, token_id, user_id, amount, prompt_amount, progress_amount, started_ms, model, channel,
         group_name, stream, price_version, kind, budgets, requested_model)
       VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    growHold: db.prepare('UPDATE holds SET amount = amount + CAST(? AS INTEGER) WHERE id = ?'),
    markProgress: db.prepare(
      'UPDATE holds SET progress_amount = max(progress_amount, CAST(? AS INTEGER)) WHERE id = ?',
    ),
    deleteHold: db.prepare('DELETE FROM holds WHERE id = ?'),
    parkHold: db.prepare(`UPDATE holds SET owner = '${PARKED}' WHERE id = ?`),
    parkedHolds: db.prepare(`SELECT * FROM holds WHERE owner = '${PARKED}'`),
    holdsOf: db.prepare('SELECT * FROM holds WHERE owner = ? LIMIT ?'),
    orphans: db.prepare('SELECT * FROM holds WHERE owner NOT IN (?, ?) LIMIT ?'),
  }
}

/** Lists the parameters of `insertHold`. */
export function holdValues(opening: HoldOpening): readonly SQLInputValue[] {
  return boundValues([
    opening.id,
    opening.owner,
    opening.token_id,
    opening.user_id,
    opening.amount,
    opening.prompt_amount,
    opening.started_ms,
    opening.model,
    opening.channel,
    opening.group,
    opening.stream ? 1 : 0,
    opening.price_version,
    opening.kind,
    opening.budgets,
    opening.requested_model,
  ])
}

/** Writes a hold and removes it in one transaction: this takes the room that a call's hold would. */
export function probeHolds({ insertProbe, deleteHold }: HoldStatements): void {
  insertProbe.run()
  deleteHold.run('')
}

/** Parameters of `orphans`: the owners whose holds stay open, and a limit. */
export function orphanValues(
  { owner, parkedToo = false }: { readonly owner: string; readonly parkedToo?: boolean },
  limit: number,
): readonly SQLInputValue[] {
  return [owner, parkedToo ? owner : PARKED, limit]
}

/** Converts a row of `parkedHolds`. */
export function parkedHold(row: Database['holds']): ParkedHold {
  return {
    id: row.id,
    owner: row.owner,
    token_id: row.token_id,
    user_id: row.user_id,
    amount: row.amount,
    prompt_amount: row.prompt_amount,
    progress_amount: row.progress_amount,
    started_ms: row.started_ms,
    model: row.model,
    channel: row.channel,
    group: row.group_name,
    stream: row.stream === 1,
    price_version: row.price_version,
    kind: row.kind as ParkedHold['kind'],
    budgets: row.budgets,
    requested_model: row.requested_model,
  }
}
