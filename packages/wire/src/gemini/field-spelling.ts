import { type Fields, nullToUndefined } from '../field.ts'
import type { Member, Node, ScannedObject } from '../json/scanned-object.ts'

const SNAKE = new Map<string, string>()

/** Converts a name to snake case, which requests may use: `inlineData` becomes `inline_data`. */
export function snakeCase(name: string): string {
  let snake = SNAKE.get(name)
  if (snake === undefined)
    SNAKE.set(name, (snake = name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)))
  return snake
}

/** Returns the spellings of a name that requests may use, the preferred one first. */
export function spellingsOf(name: string): readonly [string, string] {
  const usual = camelCase(name)
  return [usual, snakeCase(usual)]
}

/** Returns a member of an object in camel case or snake case; undefined if it is absent or null. */
export function memberInEitherSpelling(fields: Fields, name: string): unknown {
  return nullToUndefined(fields[name]) ?? nullToUndefined(fields[snakeCase(name)])
}

/** Finds the value of a member in camel case or snake case; undefined if it is absent or null. */
export function valueNodeOf(scan: ScannedObject, holder: Node | undefined, name: string): Node | undefined {
  if (holder === undefined || scan.kindOf(holder) !== 'object') return undefined
  const node = scan.memberOf(holder, name) ?? scan.memberOf(holder, snakeCase(name))
  return node === undefined || scan.kindOf(node) === 'null' ? undefined : node
}

/** Finds a top-level member in camel case or snake case; undefined if it is absent or null. */
export function topMember(scan: ScannedObject, name: string): Member | undefined {
  for (const key of [name, snakeCase(name)]) {
    const member = scan.span(key)
    if (member && scan.kindOf(member.node) !== 'null') return member
  }
  return undefined
}

/** Parses a top-level member in camel case or snake case; undefined if it is absent or null. */
export function parseTopMember(scan: ScannedObject, name: string): unknown {
  const member = topMember(scan, name)
  return member && scan.value(member.key)
}

/** Converts a name to camel case, which responses use. */
export function camelCase(name: string): string {
  return name.includes('_')
    ? name.replaceAll(/_([a-z\d])/g, (_, letter: string) => letter.toUpperCase())
    : name
}
