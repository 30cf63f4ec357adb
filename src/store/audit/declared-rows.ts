import { type DeclaredSetting, type Fields, type ObjectKind, Secret } from '../../domain/audit.ts'
import type { Json, JsonObject } from '../../domain/json.ts'
import type { DeclaredRow } from '../row-types.ts'
import type { Secrets } from '../secrets.ts'
import { channelFields, settingFieldsInAudit, OBJECT_KIND_OF_SECTION } from './object-fields.ts'
import type { ObjectState } from './object-states.ts'

/**
 * Converts settings declared in gateway.yaml to rows. Secret values are replaced by keyed hashes, which only
 * show whether a value has changed.
 */
export function declaredRows(settings: readonly DeclaredSetting[], secrets: Secrets): DeclaredRow[] {
  return settings.map(({ section, name, id, value }) => {
    const fields =
      section === 'channels'
        ? declaredChannel(name, value, secrets)
        : settingFieldsInAudit({ section, name, value }, secrets)
    const open = Object.entries(fields).filter(([, one]) => !(one instanceof Secret))
    const hidden = Object.entries(fields).flatMap(([field, one]) =>
      one instanceof Secret ? [[field, one.tag]] : [],
    )
    return {
      kind: section === 'channels' ? 'channel' : OBJECT_KIND_OF_SECTION[section],
      name,
      object_id: id,
      fields: JSON.stringify(Object.fromEntries(open)),
      tags: JSON.stringify(Object.fromEntries(hidden)),
    }
  })
}

/** Whether two lists contain the same rows, in any order. */
export function isSameRows(some: readonly DeclaredRow[], others: readonly DeclaredRow[]): boolean {
  const textOf = (rows: readonly DeclaredRow[]): string =>
    JSON.stringify(
      rows
        .map(({ kind, name, object_id, fields, tags }) => [kind, name, object_id, fields, tags].join('\0'))
        .sort(),
    )
  return textOf(some) === textOf(others)
}

/** Converts a row back to the object that it describes and the object's state. */
export function declaredState(row: DeclaredRow): ObjectState {
  const tags = Object.entries<string>(JSON.parse(row.tags))
  const fields: Fields = {
    ...JSON.parse(row.fields),
    ...Object.fromEntries(tags.map(([field, tag]) => [field, new Secret(tag)])),
  }
  return { object: { kind: row.kind as ObjectKind, id: row.object_id, name: row.name }, fields }
}

/** Key by which rows of two configurations are matched: kind and name. */
export function rowKey({ kind, name }: DeclaredRow): string {
  return `${kind} ${name}`
}

function declaredChannel(name: string, value: Json, secrets: Secrets): Fields {
  const { keys, ...declared } = (typeof value === 'object' && value !== null ? value : {}) as JsonObject
  const { status: _, ...fields } = channelFields(
    { name, declared, keys: (keys ?? []) as readonly string[], status: 1, family: {} },
    secrets,
  )
  return fields
}
