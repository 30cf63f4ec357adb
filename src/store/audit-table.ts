import type { Generated, Selectable } from 'kysely'

/** Entries of the audit log, in the order of their ids; the database refuses to change them. */
export interface AuditLogTable {
  id: Generated<number>
  at_ms: number
  actor_id: number
  actor: string
  via: string
  address: string
  action: string
  object_kind: string
  object_id: number | null
  object_name: string
  /** JSON list of `FieldChange`. */
  changes: string
}

/** Row of the audit log. */
export type AuditLogRow = Selectable<AuditLogTable>

/** Settings that the configuration file declared when it was last read, kept to detect what changes. */
export interface DeclaredRow {
  kind: string
  name: string
  object_id: number | null
  /** JSON of the fields that are not secret. */
  fields: string
  /** JSON of the tags of the secret ones. */
  tags: string
}
