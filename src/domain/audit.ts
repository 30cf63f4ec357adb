import type { Json } from './json.ts'
import type { StoredSection } from './settings.ts'

/** The ways in which a change can be made. */
export const CHANGE_INTERFACES = ['console', 'api', 'command', 'file'] as const

/** Kinds of objects in the audit log; `key` is an API key, which elsewhere is called a token. */
export const OBJECT_KINDS = [
  'user',
  'invite',
  'key',
  'channel',
  'option',
  'group',
  'model',
  'price',
  'session',
  'call',
  'batch',
  'cache',
  'content',
  'alert',
  'guard',
  'mcp_server',
  'mcp_toolset',
  'mcp_tool',
  'secret',
] as const

export type ObjectKind = (typeof OBJECT_KINDS)[number]

/** Origin of a change: who made it, and how. */
export interface ChangeOrigin {
  /** Id of the user who made the change; 0 for a command, the configuration file, or a failed sign-in. */
  readonly actorId: number
  readonly actor: string
  readonly via: (typeof CHANGE_INTERFACES)[number]
  /** Client's address; empty for commands and the file. */
  readonly address: string
  readonly atMs: number
}

/** Change of one field; null means that it has no value. */
export interface FieldChange {
  readonly field: string
  readonly before: Json
  readonly after: Json
}

/** The object that an entry of the audit log is about. */
export interface AuditedObject {
  readonly kind: ObjectKind
  /** Id of the object; null if it has only a name, as settings, sessions and calls do. */
  readonly id: number | null
  readonly name: string
}

/** The user to whom an API key belongs. */
interface KeyOwner {
  readonly id: number
  readonly name: string
}

export interface AuditEntry extends ChangeOrigin {
  readonly id: number
  /** The key's user; only in entries about API keys. */
  readonly owner?: KeyOwner | undefined
  /** Kind of the object and what happened to it: `channel.update`. */
  readonly action: string
  readonly object: AuditedObject
  readonly changes: readonly FieldChange[]
}

/** Setting that the configuration file declares, as written there, without substituting variables. */
export interface DeclaredSetting {
  readonly section: 'channels' | StoredSection
  readonly name: string
  /** The channel's id; null for settings that are not channels. */
  readonly id: number | null
  readonly value: Json
}

/** A filter for the audit log; absent fields match everything. */
export interface AuditFilter {
  /** Name or id of the user who made the change. */
  readonly actor?: string | undefined
  readonly kind?: string | undefined
  /** Name or id of the object. */
  readonly object?: string | undefined
  readonly fromMs?: number | undefined
  /** End of the period in Unix milliseconds, exclusive. */
  readonly beforeMs?: number | undefined
}

/**
 * A secret value, which the log does not show. `tag` changes with the value, so that a change can be noticed.
 */
export class Secret {
  readonly tag: string

  constructor(tag: string) {
    this.tag = tag
  }
}

/** Values of an object's fields at one moment, by the name of the field. */
export type Fields = Readonly<Record<string, Json | Secret | undefined>>

/**
 * Maximum length in characters of a value that is logged in full. Entries are never removed, so the log does
 * not take whole documents.
 */
const MAX_VALUE_LENGTH = 4_096

/**
 * Lists the fields that differ. For an object that is created or deleted (`undefined` before or after), only
 * fields with a value are listed. A secret is listed as `changed` or `removed`; its previous value is never
 * shown.
 */
export function changesBetween(before: Fields | undefined, after: Fields | undefined): FieldChange[] {
  const names = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])
  return [...names].flatMap((field): FieldChange[] => {
    const [old, next] = [before?.[field] ?? null, after?.[field] ?? null]
    if (identityOf(old) === identityOf(next)) return []
    if ((!before && isEmpty(next)) || (!after && isEmpty(old))) return []
    if (old instanceof Secret || next instanceof Secret)
      return [{ field, before: null, after: next === null ? 'removed' : 'changed' }]
    return [{ field, before: bounded(old), after: bounded(next) }]
  })
}

function identityOf(value: Json | Secret): string {
  return value instanceof Secret ? `secret ${value.tag}` : JSON.stringify(value)
}

function isEmpty(value: Json | Secret): boolean {
  return ['null', '""', '0', 'false', '[]', '{}'].includes(identityOf(value))
}

function bounded(value: Json): Json {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  if (text.length <= MAX_VALUE_LENGTH) return value
  return `${text.slice(0, MAX_VALUE_LENGTH).toWellFormed()}… (${text.length} characters)`
}
