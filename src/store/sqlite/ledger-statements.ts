import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { ROW_COLUMNS } from '../usage-row.ts'
import { type HoldStatements, prepareHolds } from './hold-statements.ts'

/** Prepared statements of the ledger. */
export type LedgerStatements = HoldStatements &
  Readonly<
    Record<
      | 'insertUsage'
      | 'chargeToken'
      | 'chargeUser'
      | 'token'
      | 'user'
      | 'heldByToken'
      | 'heldByUser'
      | 'prune'
      | 'storePriceSet',
      StatementSync
    >
  >

/** Prepares the statements. Sums are cast, because the driver binds every number as a double. */
export function prepareLedger(db: DatabaseSync): LedgerStatements {
  return {
    ...prepareHolds(db, { hasTokens: true }),
    insertUsage: db.prepare(
      `INSERT INTO usage_log (${ROW_COLUMNS.join(', ')}) VALUES (${ROW_COLUMNS.map(() => '?').join(', ')})
       ON CONFLICT (id) DO NOTHING`,
    ),
    chargeToken: db.prepare(
      `UPDATE tokens SET used_quota = used_quota + CAST(?1 AS INTEGER), remain_quota = remain_quota - CAST(?1 AS INTEGER),
         accessed_time = max(accessed_time, CAST(?2 AS INTEGER))
       WHERE id = ?3`,
    ),
    chargeUser: db.prepare(
      `UPDATE users SET used_quota = used_quota + CAST(?1 AS INTEGER), quota = quota - CAST(?1 AS INTEGER),
         request_count = request_count + CAST(?2 AS INTEGER)
       WHERE id = ?3`,
    ),
    token: db.prepare('SELECT * FROM tokens WHERE id = ?'),
    user: db.prepare('SELECT * FROM users WHERE id = ?'),
    heldByToken: db.prepare('SELECT coalesce(sum(amount), 0) AS amount FROM holds WHERE token_id = ?'),
    heldByUser: db.prepare('SELECT coalesce(sum(amount), 0) AS amount FROM holds WHERE user_id = ?'),
    storePriceSet: db.prepare(
      'INSERT INTO price_sets (version, model, group_name, content) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING',
    ),
    // Ids sort by the start of the call. The inner limit bounds the time of the statement.
    prune: db.prepare(
      'DELETE FROM usage_log WHERE id IN (SELECT id FROM usage_log ORDER BY id LIMIT ?) AND ended_ms < ?',
    ),
  }
}
