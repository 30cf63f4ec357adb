import { asksForThing } from './asks-for-thing.ts'
import { type Fields, asFields } from './fields.ts'

// Number of characters searched at the beginning and at the end of a prompt.
const MAX_PART = 6000
const JSON_NAMED = /\bJSON\b/gi
const VERBS = /\b(?:respond|reply|answer|return|output|format|produce|generate)\b/i
/** Matches a field with its type, as in `"isNewTopic" (boolean)`. */
const TYPED = /["'`](\w{1,60})["'`] ?[:(] ?(boolean|string|number|integer|array|object)\b/g
/** Matches the name of a field, as in `a single "title" field`. */
const NAMED = /["'`](\w{1,60})["'`] (?:field|key|property|member)\b/g
const KEY = /["'`](\w{1,60})["'`] ?: ?([[{\dtf]?)/g

/** Derives a JSON schema if a text asks for JSON in plain words; otherwise returns undefined. */
export function requestedJsonSchema(text: string): Fields | undefined {
  const part = text.length > 2 * MAX_PART ? `${text.slice(0, MAX_PART)}\n${text.slice(-MAX_PART)}` : text
  if (!asksForThing(part, JSON_NAMED, VERBS)) return undefined
  const example = exampleIn(part)
  if (example?.type === 'object' && example.properties !== undefined) return example
  if (example !== undefined) return schemaOf(example)
  const typed = [...part.matchAll(TYPED)].map(([, name = '', type = '']): [string, Fields] => [
    name,
    { type },
  ])
  const named = [...part.matchAll(NAMED)].map(([, name = '']): [string, Fields] => [name, {}])
  const keys = [...part.matchAll(KEY)].map(([, name = '', first = '']): [string, Fields] => [
    name,
    BY_FIRST.get(first) ?? {},
  ])
  const members = [typed, named, keys].find(({ length }) => length > 0) ?? [['answer', {}]]
  return { type: 'object', properties: Object.fromEntries(members), required: members.map(([name]) => name) }
}

const BY_FIRST = new Map<string, Fields>([
  ['[', { type: 'array', items: {} }],
  ['{', { type: 'object' }],
  ['t', { type: 'boolean' }],
  ['f', { type: 'boolean' }],
])

/** Finds the first valid JSON object in a text. */
function exampleIn(text: string): Fields | undefined {
  let from = text.indexOf('{')
  for (let tries = 0; from >= 0 && tries < 8; tries++) {
    const value = objectAt(text, from)
    if (value !== undefined && Object.keys(value).length > 0) return value
    from = text.indexOf('{', from + 1)
  }
  return undefined
}

function objectAt(text: string, from: number): Fields | undefined {
  let depth = 0
  for (let at = from; at < text.length; at++) {
    if (text[at] === '{') depth++
    else if (text[at] === '}' && --depth === 0) {
      try {
        return asFields(JSON.parse(text.slice(from, at + 1)))
      } catch {
        return undefined
      }
    }
  }
  return undefined
}

/** Derives a schema from an example of a value. */
function schemaOf(example: unknown): Fields {
  if (Array.isArray(example)) return { type: 'array', items: example.length > 0 ? schemaOf(example[0]) : {} }
  if (typeof example === 'object' && example !== null) {
    const members = Object.entries(example).map(([name, value]) => [name, schemaOf(value)])
    return { type: 'object', properties: Object.fromEntries(members), required: Object.keys(example) }
  }
  return example === null ? {} : { type: typeof example }
}
