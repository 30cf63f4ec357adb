import { isMapping, type YamlNode, YamlScalar } from './yaml-node.ts'

/** A node of the file as plain values, which can be sent to another thread. */
export type PackedNode =
  | undefined
  | readonly PackedNode[]
  | { readonly value: YamlScalar['value']; readonly source: string }
  | { readonly names: readonly string[]; readonly nodes: readonly PackedNode[] }

/** Packs a tree without unset variables. */
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
