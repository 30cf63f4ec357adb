import type { Json, JsonObject } from '../domain/stored-configuration.ts'
import { type YamlNode, YamlScalar } from './yaml-node.ts'

/** JSON as the tree that a file saying the same would be. Variables are not put in. */
export function jsonToYaml(value: Json): YamlNode {
  if (value === null) return undefined
  if (Array.isArray(value)) return (value as readonly Json[]).map(jsonToYaml)
  if (typeof value !== 'object') return new YamlScalar(value)
  const tree: Record<string, YamlNode> = Object.create(null)
  for (const [key, part] of Object.entries(value as JsonObject)) tree[key] = jsonToYaml(part)
  return tree
}
