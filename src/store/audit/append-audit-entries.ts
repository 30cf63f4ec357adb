import type { Insertable } from 'kysely'
import type { AuditEntry, ChangeOrigin } from '../../domain/audit.ts'
import type { Database } from '../row-types.ts'
import type { Db } from '../operations/operation.ts'

/** Maximum number of rows in one statement, because databases limit the number of parameters. */
const MAX_ROWS = 500

/**
 * An entry that an operation adds to the audit log. Its actor is the actor of the request, unless the entry
 * states another one.
 */
export type NewAuditEntry = Pick<AuditEntry, 'action' | 'object' | 'changes'> & {
  readonly actor?: { readonly id: number; readonly name: string }
}

/** Adds entries to the audit log, in the transaction that makes the reported changes. */
export async function appendAuditEntries(
  db: Db,
  origin: ChangeOrigin,
  entries: Iterable<NewAuditEntry>,
): Promise<void> {
  let rows: Insertable<Database['audit_log']>[] = []
  const insert = async (): Promise<void> => {
    if (rows.length > 0) await db.insertInto('audit_log').values(rows).execute()
    rows = []
  }
  for (const { action, object, changes, actor } of entries) {
    rows.push({
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
    })
    if (rows.length === MAX_ROWS) await insert()
  }
  await insert()
}
