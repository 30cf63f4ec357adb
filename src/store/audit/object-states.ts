import {
  Secret,
  changesBetween,
  type AuditedObject,
  type Fields,
  type ObjectKind,
} from '../../domain/audit.ts'
import type { StoredSection, StoredEntry } from '../../domain/settings.ts'
import { channelFromRow, entryFromRow } from '../channel-rows.ts'
import { liveTokens, liveUsers } from '../account-rows.ts'
import { type Db, inChunks } from '../operations/operation.ts'
import { type Secrets, tagOf } from '../secrets.ts'
import { CHANNEL_SETTINGS, type ChannelDefinition } from '../../domain/records/channel.ts'
import { OPTIONS } from '../../domain/options.ts'
import type { Json, JsonObject } from '../../domain/json.ts'
import type { Stored } from '../../domain/records/field-types.ts'
import type { Field, RecordColumns } from '../../domain/records/record.ts'
import { TOKEN, type TokenRow } from '../../domain/records/token.ts'
import { USER, type UserRow } from '../../domain/records/user.ts'
import type { NewEntry } from './append.ts'

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
type ObjectStates = ReadonlyMap<string, ObjectState>

/** Reads the states of objects; deleted users and tokens do not exist. */
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

/** Kinds of objects, by the section of their settings. */
export const KINDS: Readonly<Record<StoredSection, ObjectKind>> = {
  options: 'option',
  groups: 'group',
  models: 'model',
  ratios: 'price',
}

/** Options that are secrets, and sections of the file that have some. */
const SECRET_OPTIONS: ReadonlySet<string> = new Set([
  ...Object.entries(OPTIONS).flatMap(([name, { type }]) => (type === 'bearer' ? [name] : [])),
  'login',
  'alerts',
])

/** The fields of a user that can be changed, by their names in the API. */
function userFields(row: UserRow): Fields {
  return auditFields(USER, row)
}

/** The fields of a token that can be changed, by their names in the API. */
function tokenFields(row: TokenRow): Fields {
  return { ...auditFields(TOKEN, row), limits_by: row.operator_terms === '' ? '' : 'operator' }
}

/** The fields of a channel, by their names in gateway.yaml. Fields of tools may contain credentials. */
export function channelFields(
  { name, declared, keys, status, family }: ChannelDefinition,
  secrets: Secrets,
): Fields {
  const settings: Readonly<Record<string, Field>> = CHANNEL_SETTINGS.fields
  const shown = (field: string, value: Json): Json | Secret => {
    const { audit, secret = !audit } = settings[field] ?? {}
    const isOpen = isEmptyJson(value) || (field === 'base_url' && isPlainAddress(value))
    return secret && !isOpen ? secretValue(value, secrets) : value
  }
  const fields = Object.entries(declared).map(([field, value]) => [field, shown(field, value)])
  return {
    name,
    status,
    ...Object.fromEntries(fields),
    keys: keys.length > 0 ? shown('keys', keys) : null,
    other_fields: isEmptyJson(family) ? null : secretValue(family, secrets),
  }
}

/** The fields of a setting: those of its object, or its value. */
export function entryFields({ section, name, value }: StoredEntry, secrets: Secrets): Fields {
  if (section === 'options' && SECRET_OPTIONS.has(name)) return { value: secretValue(value, secrets) }
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as JsonObject)
    : { value }
}

function auditFields({ columns }: RecordColumns, row: object): Fields {
  const values = row as Readonly<Record<string, Stored>>
  const audited = columns.filter(({ audit }) => audit)
  return Object.fromEntries(
    audited.map(({ audit, field, name, secret, type }) => {
      const value = values[name] ?? null
      const shown = secret ? secretOf(value as string | null) : (type.decode(value) as Json)
      return [typeof audit === 'string' ? audit : field, shown]
    }),
  )
}

function secretOf(hash: string | null): Secret | null {
  return hash === null ? null : new Secret(hash)
}

function secretValue(value: Json, secrets: Secrets): Secret {
  return new Secret(tagOf(secrets, 'audit', JSON.stringify(value)))
}

/** Paths of providers' APIs; some servers take their key in other parts of a path. */
const PLAIN_PATH = /^(?:\/(?:v\d+(?:alpha|beta)?\d*|api|openai|anthropic))*\/?$/

/** Whether an address contains neither credentials nor a query, nor a path that may be a credential. */
function isPlainAddress(value: Json): boolean {
  const url = typeof value === 'string' ? URL.parse(value) : null
  const isPlain = url && url.username === '' && url.password === '' && PLAIN_PATH.test(url.pathname)
  return Boolean(isPlain && url.search === '' && url.hash === '')
}

function isEmptyJson(value: Json): boolean {
  return ['{}', '[]', '""', 'null', 'false'].includes(JSON.stringify(value))
}

/**
 * Settings are not created or deleted: without an entry, the value of the file or the built-in one applies.
 */
const SETTINGS: ReadonlySet<string> = new Set(['option', 'group', 'model', 'price'])

/**
 * Yields an entry for each object that differs between two states; an object is compared when its entry is
 * requested.
 */
export function* entriesBetween(before: ObjectStates, after: ObjectStates): Iterable<NewEntry> {
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
