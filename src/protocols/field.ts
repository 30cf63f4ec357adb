import { refuse } from './field-check.ts'
import { asRecord } from './json/record.ts'

/** A JSON object that was parsed. */
export type Fields = Readonly<Record<string, unknown>>

/** The value, if it is there: null is absence. */
export function present(value: unknown): unknown {
  return value === null ? undefined : value
}

/** A string at a path of the request; throws `invalid_request` naming the path. */
export function textAt(value: unknown, path: string): string {
  return typeof value === 'string' ? value : refuse(path, 'a string', kindOf(value))
}

/** An object at a path of the request; throws `invalid_request` naming the path. */
export function fieldsAt(value: unknown, path: string): Fields {
  return asRecord(value) ?? refuse(path, 'an object', kindOf(value))
}

/** An array at a path of the request; throws `invalid_request` naming the path. */
export function listAt(value: unknown, path: string): readonly unknown[] {
  return Array.isArray(value) ? value : refuse(path, 'an array', kindOf(value))
}

/** A boolean at a path of the request; throws `invalid_request` naming the path. */
export function booleanAt(value: unknown, path: string): boolean {
  return typeof value === 'boolean' ? value : refuse(path, 'true or false', kindOf(value))
}

/** What a word at a path of the request stands for; throws `invalid_request` that lists the words. */
export function enumAt<T>(values: ReadonlyMap<string, T>, value: unknown, path: string): T {
  const meant = values.get(textAt(value, path))
  return meant ?? refuse(path, `one of ${[...values.keys()].join(', ')}`, 'another string')
}

/** What kind of value it is, with its article: what it says stays unsaid. */
export function kindOf(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}
