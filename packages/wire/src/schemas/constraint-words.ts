import { textOf, type Tree, type TreeObject, withMembers, writeTree } from './schema-tree.ts'

/** Constraints in words, by the keyword. The value is given as JSON text, a string without its quotes. */
const WORDS: Readonly<Record<string, (value: string) => string>> = {
  minimum: (value) => `at least ${value}`,
  maximum: (value) => `at most ${value}`,
  exclusiveMinimum: (value) => `greater than ${value}`,
  exclusiveMaximum: (value) => `less than ${value}`,
  multipleOf: (value) => `a multiple of ${value}`,
  minLength: (value) => `at least ${value} characters`,
  maxLength: (value) => `at most ${value} characters`,
  pattern: (value) => `matches the regular expression ${value}`,
  format: (value) => `in the format ${value}`,
  minItems: (value) => `at least ${value} items`,
  maxItems: (value) => `at most ${value} items`,
  uniqueItems: () => 'all items are different',
  minProperties: (value) => `at least ${value} properties`,
  maxProperties: (value) => `at most ${value} properties`,
}

/** Keywords without a meaning for the model. */
const SILENT: ReadonlySet<string> = new Set(['$schema', '$id', '$anchor', '$comment', '$vocabulary'])
/** Values with which a keyword allows everything, as JSON text. */
const ALLOWS_ALL: ReadonlyMap<string, string> = new Map([
  ['minLength', '0'],
  ['minItems', '0'],
  ['minProperties', '0'],
  ['uniqueItems', 'false'],
  ['additionalProperties', 'true'],
])

/** Says in words what a keyword demands; nothing if it allows everything. */
export function wordsFor(keyword: string, value: Tree): readonly string[] {
  if (SILENT.has(keyword) || writeTree(value) === ALLOWS_ALL.get(keyword)) return []
  const words = Object.hasOwn(WORDS, keyword) ? WORDS[keyword] : undefined
  const text = textOf(value) ?? writeTree(value)
  return [words ? words(text) : `${keyword}: ${writeTree(value)}`]
}

/** Adds constraints in words to the description of a schema. */
export function withWords(schema: TreeObject, words: readonly string[]): TreeObject {
  if (words.length === 0) return schema
  return withText(schema, `Constraints: ${words.join('; ')}.`)
}

/** Adds a paragraph to the description of a schema. */
export function withText(schema: TreeObject, text: string): TreeObject {
  const description = textOf(schema.members.get('description'))
  const whole = description ? `${description}\n\n${text}` : text
  return withMembers(schema, [['description', JSON.stringify(whole)]])
}
