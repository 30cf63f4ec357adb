import fc from 'fast-check'
import type { Shape } from '../../packages/wire/src/shape/define-shape.ts'
import type { Members } from '../../packages/wire/src/shape/vocabulary.ts'
import { objectTexts, Raw, jsonText } from './json.ts'

type Tables = Readonly<Record<string, Members<string>>>

const OBJECTS = objectTexts(1).map((text) => new Raw(text))
const LEAVES = fc.oneof(fc.string({ maxLength: 6 }), fc.constantFrom<unknown>(null, true, 7))
const UNKNOWN = fc.constantFrom('novelty', 'Text', 'texts', 'con\u0074ent_', 'a "quoted" key', '')

/**
 * Documents of a shape as JSON texts: a few members of each table with values that fit, and some with values that do not,
 * beside members that the shape does not describe. Some keys are written with escape sequences.
 */
export function shapedDocuments({ tables, rootName }: Shape): fc.Arbitrary<string> {
  return objectsOf(tables, rootName, 5).map(jsonText)
}

function objectsOf(tables: Tables, name: string, depth: number): fc.Arbitrary<unknown> {
  const variants = Object.keys(tables).filter(
    (one) => one === name || one.startsWith(`${name}:`) || one.startsWith(`${name}?`),
  )
  return fc.constantFrom(...variants).chain((variant) => {
    const members = { ...tables[name], ...tables[variant] }
    const [, type] = variant.split(':')
    const [, flag] = variant.split('?')
    const all = Object.keys(members).filter((one) => one !== flag && !(one === 'type' && type !== undefined))
    const some = fc.subarray(all, { minLength: Math.min(1, all.length), maxLength: Math.min(5, all.length) })
    return some.chain((names) =>
      fc
        .tuple(
          ...names.map((member) =>
            fc.tuple(writtenKeys(member), valuesOf(tables, members[member] ?? '', depth - 1)),
          ),
          fc.tuple(
            UNKNOWN.map((key) => JSON.stringify(key)),
            fc.oneof(LEAVES, OBJECTS),
          ),
        )
        .map((pairs) => {
          const stated: [string, unknown][] = [
            ...(type === undefined ? [] : [['"type"', type] as [string, unknown]]),
            ...(flag === undefined ? [] : [[JSON.stringify(flag), true] as [string, unknown]]),
          ]
          const written = [...pairs, ...stated].map(([key, value]) => `${key}:${jsonText(value)}`)
          return new Raw(`{${written.join(',')}}`)
        }),
    )
  })
}

/** A key as JSON, whose first letter may be an escape sequence. */
function writtenKeys(name: string): fc.Arbitrary<string> {
  const escaped = `"\\u${(name.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}${name.slice(1)}"`
  return fc.oneof(
    { weight: 6, arbitrary: fc.constant(JSON.stringify(name)) },
    { weight: 1, arbitrary: fc.constant(escaped) },
  )
}

const ROLES = fc.constantFrom(
  'system',
  'developer',
  'user',
  'assistant',
  'model',
  'tool',
  'function',
  'other',
)

function valuesOf(tables: Tables, place: string, depth: number): fc.Arbitrary<unknown> {
  const [content = ''] = place.split(' of ')
  const within = content.replaceAll(/[{}]/g, '')
  const table = within.split(' | ').find((one) => Object.hasOwn(tables, one))
  if (content === 'role') return fc.oneof(ROLES, LEAVES)
  if (table === undefined || depth <= 0) return fc.oneof(LEAVES, OBJECTS, fc.array(LEAVES, { maxLength: 2 }))
  const objects = objectsOf(tables, table, depth)
  if (content.startsWith('{'))
    return fc.oneof(
      fc.dictionary(fc.string({ maxLength: 4 }), objects, { maxKeys: 2, noNullPrototype: true }),
      LEAVES,
    )
  return fc.oneof(LEAVES, objects, fc.array(fc.oneof(objects, LEAVES), { maxLength: 2 }))
}
