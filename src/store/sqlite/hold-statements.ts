import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import { NO_USAGE } from '@sluice/wire/usage'
import { valueListerOf } from '../../domain/records/record.ts'
import { HOLD, type HoldOpening, type HoldRow, type SettledCall } from '../../domain/records/usage.ts'
import { PARKED_OWNER } from '../ledger-writes.ts'
import { boundValues } from './bound-values.ts'
import { formatBudgetList, parseBudgetList, chargedBudgets } from '../../domain/budget.ts'

const listHold = valueListerOf(HOLD.columns)
const COLUMNS = HOLD.columns.map(({ name }) => name).join(', ')
/**
 * The columns with an amount that the driver can read: it throws above 2^53. A negative amount, which an earlier version
 * may have left, would be quota to spend.
 */
const READABLE = COLUMNS.replace(', amount,', `, max(0, min(amount, ${Number.MAX_SAFE_INTEGER})) AS amount,`)

/**
 * Prepared statements on holds (reservations of quota), for the main database file and for the file of a
 * node.
 */
export type HoldStatements = Readonly<
  Record<
    | 'insertHold'
    | 'insertProbe'
    | 'growHold'
    | 'markProgress'
    | 'parkHold'
    | 'parkedHolds'
    | 'deleteHold'
    | 'orphans',
    StatementSync
  >
>

/**
 * Prepares the statements. Amounts are cast to integers, because the driver binds every number as a double.
 * With `hasTokens`, a hold refers to a row of the table of tokens; while that table is empty, `insertProbe`
 * inserts nothing.
 */
export function prepareHolds(
  db: DatabaseSync,
  { hasTokens }: { readonly hasTokens: boolean },
): HoldStatements {
  return {
    insertProbe: db.prepare(
      `INSERT INTO holds (${COLUMNS}) SELECT ${probeValues(hasTokens)} ${hasTokens ? 'FROM tokens LIMIT 1' : ''}`,
    ),
    insertHold: db.prepare(
      `INSERT INTO holds (${COLUMNS}) VALUES (${HOLD.columns.map(() => '?').join(', ')})`,
    ),
    // What the lines of a batch release may be more than it holds, also if a growth could not be written.
    growHold: db.prepare('UPDATE holds SET amount = max(0, amount + CAST(? AS INTEGER)) WHERE id = ?'),
    markProgress: db.prepare(
      'UPDATE holds SET progress_amount = max(progress_amount, CAST(? AS INTEGER)) WHERE id = ?',
    ),
    deleteHold: db.prepare('DELETE FROM holds WHERE id = ?'),
    parkHold: db.prepare(`UPDATE holds SET owner = '${PARKED_OWNER}' WHERE id = ?`),
    parkedHolds: db.prepare(`SELECT ${READABLE} FROM holds WHERE owner = '${PARKED_OWNER}'`),
    orphans: db.prepare(`SELECT ${READABLE} FROM holds WHERE owner NOT IN (?, ?) LIMIT ?`),
  }
}

/** Returns the values of a new hold, in the order of the parameters of `insertHold`. */
export function holdValues(opening: HoldOpening): readonly SQLInputValue[] {
  return boundValues(listHold(opening))
}

// Returns the SQL values of a test hold. If there is a table of tokens, the hold belongs to any token in it.
function probeValues(hasTokens: boolean): string {
  const told: Readonly<Record<string, string>> = {
    owner: "'probe'",
    ...(hasTokens && { token_id: 'id', user_id: 'user_id' }),
  }
  return HOLD.columns.map(({ name, type }) => told[name] ?? (type.column === 'text' ? "''" : '0')).join(', ')
}

/**
 * Writes a hold and removes it in one transaction, to test whether there is disk space for the hold of a
 * call.
 */
export function testWriteHold({ insertProbe, deleteHold }: HoldStatements): void {
  insertProbe.run()
  deleteHold.run('')
}

/**
 * Returns the parameters of `orphans`: the two owners whose holds stay open, and the maximum number of rows.
 */
export function orphanHoldParameters(
  { owner, parkedToo = false }: { readonly owner: string; readonly parkedToo?: boolean },
  limit: number,
): readonly SQLInputValue[] {
  return [owner, parkedToo ? owner : PARKED_OWNER, limit]
}

/**
 * Builds the settlement of a call that a crash left open. Charges the prompt and the delivered output, but at
 * most the amount of the hold.
 */
export function settlementOfCrashedCall(row: HoldRow, nowMs: number): SettledCall {
  const hold = HOLD.fromRow(row)
  const { model, group, amount, prompt_amount, progress_amount } = hold
  return {
    ...hold,
    upstream_model: model,
    quota: Math.min(amount, prompt_amount + progress_amount),
    reason: 'crash',
    cause: 'gateway',
    delivered: progress_amount > 0,
    ended_ms: nowMs,
    usage: NO_USAGE,
    duration_ms: Math.max(0, nowMs - hold.started_ms),
    budgets: formatBudgetList(chargedBudgets(parseBudgetList(hold.budgets), group)),
  }
}
