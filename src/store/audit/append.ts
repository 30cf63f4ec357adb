import type { AuditEntry, Origin } from '../../domain/audit.ts'
import type { Db } from '../operations/operation.ts'

/** Most rows in one statement; databases limit the number of parameters. */
const MAX_ROWS = 500

/** Entry that an operation adds; the actor is the origin's, unless it is stated. */
export type NewEntry = Pick<AuditEntry, 'action' | 'object' | 'changes'> & {
  readonly actor?: { readonly id: number; readonly name: string }
}

/** Adds entries to the audit log, in the transaction of what they report. */
export async function appendEntries(db: Db, origin: Origin, entries: readonly NewEntry[]): Promise<void> {
  const rows = entries.map(({ action, object, changes, actor }) => ({
    at_ms: origin.atMs,
    actor_id: actor?.id ?? origin.actorId,
    actor: actor?.name ?? origin.actor,
    via: origin.via,
    address: origin.address,
    action,
    object_kind: object.kind,
    object_id: object.id,
    object_name: object.name,
    changes: JSON.stringify(changes),
  }))
  for (let start = 0; start < rows.length; start += MAX_ROWS)
    await db
      .insertInto('audit_log')
      .values(rows.slice(start, start + MAX_ROWS))
      .execute()
}
