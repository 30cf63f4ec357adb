import { withWords } from './constraint-words.ts'
import { referenceOf, References } from './references.ts'
import { SchemaWork } from './schema-work.ts'
import {
  elementsOf,
  isTreeObject,
  mapInnerSchemas,
  parseTree,
  textsOf,
  treeObject,
  type TreeObject,
  withMembers,
  without,
} from './schema-tree.ts'

/**
 * Converts a schema to the form that Gemini accepts in `responseJsonSchema`: a reference has no other members
 * beside it, and is recursive only within properties that are not required. All other members may be sent.
 * Returns a schema in this form unchanged.
 *
 * Source: `GenerationConfig.responseJsonSchema` in https://ai.google.dev/api/generate-content. For
 * `parametersJsonSchema`, no such limits are documented.
 */
export function toGeminiSchema(text: string): string {
  if (!text.includes('"$ref"')) return text
  const work = new SchemaWork()
  work.begin(text)
  const root = parseTree(text)
  return work.write(adapt(root, new References(root, (isOptional) => !isOptional), work, [], false))
}

function adapt(
  schema: TreeObject,
  references: References,
  work: SchemaWork,
  outer: readonly string[],
  isOptional: boolean,
): TreeObject {
  const within = references.within(schema, outer)
  const inProperty = isOptional && within === outer
  const required = new Set(textsOf(schema.members.get('required')))
  const inner = mapInnerSchemas(schema, (one, member, name = '') => {
    if (!isTreeObject(one)) return one
    if (member === '$defs' || member === 'definitions') return adapt(one, references, work, [], false)
    return adapt(
      one,
      references,
      work,
      within,
      inProperty || (member === 'properties' && !required.has(name)),
    )
  })
  const pointer = referenceOf(inner)
  if (pointer === undefined) return inner
  const rest = without(inner, ['$ref'])
  const target = references.resolve(pointer)
  if (target && !isOptional && references.isRecursive(pointer, within)) {
    const { schema: cut, words } = references.cut(target)
    work.copy(cut)
    work.spend(words.length)
    return withWords(withMembers(cut, rest.members), [`recursive: like ${pointer}${words}`])
  }
  if ([...rest.members.keys()].every((name) => name.startsWith('$'))) return inner
  if (elementsOf(rest.members.get('anyOf')).length > 0) return withWords(rest, [`like ${pointer}`])
  return withMembers(rest, [
    ['anyOf', { elements: [treeObject([['$ref', schema.members.get('$ref') as string]])] }],
  ])
}
