/** A scalar of the file: its value and its source text. */
export class YamlScalar {
  readonly value: string | number | boolean
  /**
   * The text as written in the file, before variables are substituted. It contains no secret values, and all
   * digits of a number.
   */
  readonly source: string

  constructor(value: string | number | boolean, source: string = String(value)) {
    this.value = value
    this.source = source
  }
}

/**
 * A text with variables that are not set. That error was already reported, so fields do not report another.
 */
export class UnresolvedScalar extends YamlScalar {}

/** A node of the file; null and missing nodes are undefined. Mappings have no prototype. */
export type YamlNode = YamlScalar | undefined | readonly YamlNode[] | { readonly [key: string]: YamlNode }

/** Whether a node has variables: messages show its source, never its value. */
export function isFromVariable(node: YamlNode): boolean {
  return node instanceof YamlScalar && node.source.includes('${')
}

/** The value of `key`, if `tree` is a mapping. */
export function childOfNode(tree: YamlNode, key: string): YamlNode {
  return isMapping(tree) ? tree[key] : undefined
}

/** The entries of a list; empty if `tree` is not a list. */
export function itemsOfNode(tree: YamlNode): readonly YamlNode[] {
  return Array.isArray(tree) ? tree : []
}

/** The keys of a mapping; empty if `tree` is not a mapping. */
export function keysOfNode(tree: YamlNode): readonly string[] {
  return isMapping(tree) ? Object.keys(tree) : []
}

/** Whether a YAML node is a mapping. */
export function isMapping(tree: YamlNode): tree is { readonly [key: string]: YamlNode } {
  return typeof tree === 'object' && !Array.isArray(tree) && !(tree instanceof YamlScalar)
}

/** A YAML node in a form that can be sent to another thread. */
export type PackedNode =
  | undefined
  | readonly PackedNode[]
  | { readonly value: YamlScalar['value']; readonly source: string }
  | { readonly names: readonly string[]; readonly nodes: readonly PackedNode[] }

/** Packs a tree for another thread. It must not contain unset variables. */
export function packNode(node: YamlNode): PackedNode {
  if (node === undefined) return undefined
  if (node instanceof YamlScalar) return { value: node.value, source: node.source }
  if (!isMapping(node)) return node.map(packNode)
  return { names: Object.keys(node), nodes: Object.values(node).map(packNode) }
}

/** Restores the tree that was given to `packNode`. */
export function unpackNode(packed: PackedNode): YamlNode {
  if (packed === undefined) return undefined
  if ('source' in packed) return new YamlScalar(packed.value, packed.source)
  if (!('names' in packed)) return packed.map(unpackNode)
  const mapping: Record<string, YamlNode> = Object.create(null)
  for (const [index, key] of packed.names.entries()) mapping[key] = unpackNode(packed.nodes[index])
  return mapping
}
