import { isName } from '../domain/records/field-types.ts'
import { escapeInvisible, isVisibleLabel } from '../domain/username.ts'
import type { Path } from './diagnostics.ts'
import type { Issue } from './fields.ts'
import { childOfNode, isMapping, itemsOfNode, keysOfNode, type YamlNode, YamlScalar } from './yaml-node.ts'

/** An issue of a name, with the name. */
export interface InvisibleName extends Issue {
  readonly name: string
}

/** Fields with names, of one or in a list, in the entries of each section; of a mapping its keys as well. */
const FIELDS = {
  channels: ['name', 'models', 'model_mapping'],
  models: ['vendor', 'fallback', 'context_fallback', 'content_fallback', 'successor'],
  guards: ['models', 'groups', 'users', 'tokens'],
} as const

/**
 * Errors for names of channels and models that have invisible or blank characters, so that they look like
 * others, and for guards that are limited to such names, and would never apply.
 * `docs/api.md: Users`.
 */
export function invisibleNames(tree: YamlNode): InvisibleName[] {
  return Object.entries(FIELDS).flatMap(([section, fields]) => {
    const part = childOfNode(tree, section)
    return [
      ...keysOfNode(part).flatMap((name) => invisible(name, [section, name])),
      ...childrenOf(part).flatMap(([entry, key]) =>
        fields.flatMap((field) => invisibleIn(childOfNode(entry, field), [section, key, field])),
      ),
    ]
  })
}

/**
 * Issues of names of groups and models that a list in another place could not repeat: a warning in files, which
 * may have had them for long, and an error over HTTP. `docs/api.md: Users`.
 */
export function unlistableNames(tree: YamlNode): InvisibleName[] {
  return (['groups', 'models'] as const).flatMap((section) =>
    keysOfNode(childOfNode(tree, section)).flatMap((name) => unfit(name, section)),
  )
}

/** A channel lists its groups with commas between them. */
function unfit(name: string, section: 'groups' | 'models'): InvisibleName[] {
  const hasComma = section === 'groups' && name.includes(',')
  if (isName(name) && !hasComma) return []
  const without = section === 'groups' ? ', control characters and commas' : ' and control characters'
  const found = escapeInvisible(JSON.stringify(name)).slice(0, 200)
  return [
    {
      path: [section, name],
      message: `expected a name without spaces around it${without}, found ${found}`,
      name,
    },
  ]
}

/** The errors in one value of a field. */
function invisibleIn(node: YamlNode, path: Path): InvisibleName[] {
  if (node instanceof YamlScalar) return invisible(String(node.value), path, node.source)
  return [
    ...keysOfNode(node).flatMap((name) => invisible(name, [...path, name])),
    ...childrenOf(node).flatMap(([child, key]) =>
      child instanceof YamlScalar ? invisible(String(child.value), [...path, key], child.source) : [],
    ),
  ]
}

function childrenOf(node: YamlNode): (readonly [YamlNode, string | number])[] {
  return isMapping(node)
    ? Object.entries(node).map(([key, child]) => [child, key] as const)
    : itemsOfNode(node).map((child, index) => [child, index] as const)
}

/** `source` is the name as it is written in the file, without the values of variables. */
function invisible(name: string, path: Path, source = name): InvisibleName[] {
  if (isVisibleLabel(name)) return []
  const message = `expected a name without invisible and blank characters, found "${escapeInvisible(source).slice(0, 200)}"`
  return [{ path, message, name }]
}
