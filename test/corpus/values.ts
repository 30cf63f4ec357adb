/** JSON values of every kind, as text. */
export const VALUES = [
  'null',
  'true',
  'false',
  '0',
  '-0',
  '-1',
  '1.5',
  '1e400',
  '9007199254740993',
  '""',
  '"x"',
  '"\\ud800"',
  '"\\u0000"',
  '[]',
  '[null]',
  '[[]]',
  '[{}]',
  '{}',
  '{"type":"text"}',
  '{"__proto__":{"x":1}}',
] as const

/** The kind of a JSON value. */
export type Kind = 'null' | 'boolean' | 'number' | 'string' | 'array' | 'object'

const KINDS: ReadonlyMap<string, Kind> = new Map<string, Kind>([
  ['n', 'null'],
  ['t', 'boolean'],
  ['f', 'boolean'],
  ['"', 'string'],
  ['[', 'array'],
  ['{', 'object'],
])

/** The kind of a value given as JSON text. */
export function kindOf(text: string): Kind {
  return KINDS.get(text.charAt(0)) ?? 'number'
}

/** Names that a plain object inherits. */
export const INHERITED = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'valueOf',
  'hasOwnProperty',
  'isPrototypeOf',
  '__defineGetter__',
  '__lookupSetter__',
  'toJSON',
  'then',
  'length',
] as const
