import { changesBetween } from '../../domain/audit.ts'
import type { NewEntry } from './append.ts'
import type { ObjectStates } from './object-states.ts'

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
