import { isJsonText } from '../protocols/json/exact-json.ts'

/**
 * Depth to which containers are divided: the response, its data, a list in the data, and the list's elements.
 */
const DEPTH = 4

/** Yields the JSON of a value, as `JSON.stringify` writes it, in pieces: object members and list elements. */
export function* jsonPieces(value: unknown, depth = DEPTH): Generator<string, void, undefined> {
  if (depth > 0 && Array.isArray(value)) yield* elements(value, depth - 1)
  else if (depth > 0 && isPlain(value)) yield* members(value, depth - 1)
  else yield JSON.stringify(value)
}

function* elements(list: readonly unknown[], depth: number): Generator<string, void, undefined> {
  let before = '['
  for (const element of list) {
    yield before
    yield* jsonPieces(isWritten(element) ? element : null, depth)
    before = ','
  }
  yield before === '[' ? '[]' : ']'
}

function* members(object: object, depth: number): Generator<string, void, undefined> {
  let before = '{'
  for (const [name, value] of Object.entries(object)) {
    if (!isWritten(value)) continue
    yield `${before}${JSON.stringify(name)}:`
    yield* jsonPieces(value, depth)
    before = ','
  }
  yield before === '{' ? '{}' : '}'
}

function isWritten(value: unknown): boolean {
  return value !== undefined && typeof value !== 'function' && typeof value !== 'symbol'
}

/** Whether an object is fully described by its members, without `toJSON` or a class of its own. */
function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null || 'toJSON' in value || isJsonText(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
