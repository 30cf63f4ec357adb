import { type AuditedObject, changesBetween, type Fields } from '../../domain/audit.ts'
import type { StoredSection } from '../../domain/settings.ts'
import { undeletedTokens, undeletedUsers } from '../account-rows.ts'
import { channelFromRow, storedSettingFromRow } from '../channel-rows.ts'
import { type Db, inChunks } from '../operations/operation.ts'
import type { Secrets } from '../secrets.ts'
import type { NewAuditEntry } from './append-audit-entries.ts'
import {
  channelFields,
  settingFieldsInAudit,
  settingNameInAudit,
  OBJECT_KIND_OF_SECTION,
  tokenFields,
  userFields,
} from './object-fields.ts'

/**
 * Reference to an object that an operation may change: its kind and id, or its section of settings and name.
 */
export type ObjectReference =
  | { readonly kind: 'user' | 'key' | 'channel'; readonly id: number }
  | { readonly section: StoredSection; readonly name: string }

/** State of an object, which the audit log compares before and after an operation: its fields. */
export interface ObjectState {
  readonly object: AuditedObject
  readonly fields: Fields
}

/** States of objects that exist, by kind and id or name. */
type ObjectStates = ReadonlyMap<string, ObjectState>

/** Reads the states of these objects. Deleted users and tokens count as missing. */
export async function objectStates(
  db: Db,
  references: readonly ObjectReference[],
  secrets: Secrets,
): Promise<ObjectStates> {
  const states = [
    ...(await inChunks(idsOf(references, 'user'), (ids) => users(db, ids))),
    ...(await inChunks(idsOf(references, 'key'), (ids) => keys(db, ids))),
    ...(await inChunks(idsOf(references, 'channel'), (ids) => channels(db, ids, secrets))),
    ...(await settings(db, references, secrets)),
  ]
  return new Map(
    states.map((state) => [`${state.object.kind} ${state.object.id ?? state.object.name}`, state]),
  )
}

function idsOf(references: readonly ObjectReference[], kind: 'user' | 'key' | 'channel'): number[] {
  const ids = references.flatMap((one) => ('kind' in one && one.kind === kind ? [one.id] : []))
  return [...new Set(ids)]
}

async function users(db: Db, ids: readonly number[]): Promise<ObjectState[]> {
  const rows = await undeletedUsers(db).selectAll().where('id', 'in', ids).execute()
  return rows.map((row) => ({
    object: { kind: 'user', id: row.id, name: row.username },
    fields: userFields(row),
  }))
}

async function keys(db: Db, ids: readonly number[]): Promise<ObjectState[]> {
  const rows = await undeletedTokens(db).selectAll().where('id', 'in', ids).execute()
  return rows.map((row) => ({
    object: { kind: 'key', id: row.id, name: row.name },
    fields: tokenFields(row),
  }))
}

async function channels(db: Db, ids: readonly number[], secrets: Secrets): Promise<ObjectState[]> {
  const rows = await db.selectFrom('channels').selectAll().where('id', 'in', ids).execute()
  return rows.map((row) => ({
    object: { kind: 'channel', id: row.id, name: row.name },
    fields: channelFields(channelFromRow(row, secrets), secrets),
  }))
}

async function settings(
  db: Db,
  references: readonly ObjectReference[],
  secrets: Secrets,
): Promise<ObjectState[]> {
  const states: ObjectState[] = []
  const bySection = Map.groupBy(
    references.filter((one) => 'section' in one),
    ({ section }) => section,
  )
  for (const [section, entries] of bySection) {
    const names = new Set(entries.map(({ name }) => name))
    // Reads the whole section: it is small, and a request may name more entries than one statement can have
    // parameters.
    const rows = await db.selectFrom('stored_settings').selectAll().where('section', '=', section).execute()
    for (const row of rows) {
      if (!names.has(row.name)) continue
      const entry = storedSettingFromRow(row, secrets)
      const object = { kind: OBJECT_KIND_OF_SECTION[section], id: null, name: settingNameInAudit(entry) }
      states.push({ object, fields: settingFieldsInAudit(entry, secrets) })
    }
  }
  return states
}

/**
 * Kinds of settings that always have a value, from the configuration file or built in. A change to such a
 * setting is therefore an update, never a creation or deletion.
 */
const SETTINGS: ReadonlySet<string> = new Set(['option', 'group', 'model', 'price'])

/**
 * Yields an audit entry for each object that differs between two states. An object is compared when the
 * caller requests the next entry.
 */
export function* entriesBetween(before: ObjectStates, after: ObjectStates): Iterable<NewAuditEntry> {
  for (const identity of new Set([...before.keys(), ...after.keys()])) {
    const [old, next] = [before.get(identity), after.get(identity)]
    const object = (next ?? old)?.object
    const changes = changesBetween(old?.fields, next?.fields)
    if (object && changes.length > 0)
      yield { action: `${object.kind}.${verbOf(object.kind, old, next)}`, object, changes }
  }
}

function verbOf(kind: string, before: unknown, after: unknown): 'create' | 'update' | 'delete' {
  if (SETTINGS.has(kind) || (before && after)) return 'update'
  return after ? 'create' : 'delete'
}
