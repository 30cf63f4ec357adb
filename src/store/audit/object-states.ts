import type { AuditedObject, Fields } from '../../domain/audit.ts'
import type { StoredSection } from '../../domain/settings.ts'
import { channelFromRow, entryFromRow } from '../channel-rows.ts'
import { liveTokens, liveUsers } from '../live-rows.ts'
import type { Db } from '../operations/operation.ts'
import type { Secrets } from '../secrets.ts'
import { channelFields, entryFields, KINDS, tokenFields, userFields } from './object-fields.ts'

/** Maximum number of ids in one statement, because databases limit the number of parameters. */
const MAX_IDS = 500

/** Object that an operation may change: by id, or by its name in a section of the settings. */
export type ObjectReference =
  | { readonly kind: 'user' | 'key' | 'channel'; readonly id: number }
  | { readonly section: StoredSection; readonly name: string }

/** Object with its fields. */
export interface ObjectState {
  readonly object: AuditedObject
  readonly fields: Fields
}

/** States of objects that exist, by kind and id or name. */
export type ObjectStates = ReadonlyMap<string, ObjectState>

/** Reads the states of objects; deleted users and tokens do not exist. */
export async function objectStates(
  db: Db,
  references: readonly ObjectReference[],
  secrets: Secrets,
): Promise<ObjectStates> {
  const states = [
    ...(await inParts(idsOf(references, 'user'), (ids) => users(db, ids))),
    ...(await inParts(idsOf(references, 'key'), (ids) => keys(db, ids))),
    ...(await inParts(idsOf(references, 'channel'), (ids) => channels(db, ids, secrets))),
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

async function inParts<State>(
  ids: readonly number[],
  read: (ids: readonly number[]) => Promise<State[]>,
): Promise<State[]> {
  const states: State[] = []
  for (let start = 0; start < ids.length; start += MAX_IDS)
    states.push(...(await read(ids.slice(start, start + MAX_IDS))))
  return states
}

async function users(db: Db, ids: readonly number[]): Promise<ObjectState[]> {
  const rows = await liveUsers(db).selectAll().where('id', 'in', ids).execute()
  return rows.map((row) => ({
    object: { kind: 'user', id: row.id, name: row.username },
    fields: userFields(row),
  }))
}

async function keys(db: Db, ids: readonly number[]): Promise<ObjectState[]> {
  const rows = await liveTokens(db).selectAll().where('id', 'in', ids).execute()
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
    // Sections are small, and a request may name more entries than a statement takes.
    const rows = await db.selectFrom('stored_settings').selectAll().where('section', '=', section).execute()
    for (const row of rows) {
      if (!names.has(row.name)) continue
      const object = { kind: KINDS[section], id: null, name: row.name }
      states.push({ object, fields: entryFields(entryFromRow(row), secrets) })
    }
  }
  return states
}
