import type { Json, JsonObject } from '../domain/records/field-types.ts'
import { type YamlNode, YamlScalar } from './yaml-node.ts'

/** Converts JSON to the tree of an equal YAML file. Variables are not substituted. */
export function jsonToYaml(value: Json): YamlNode {
  if (value === null) return undefined
  if (Array.isArray(value)) return (value as readonly Json[]).map(jsonToYaml)
  if (typeof value !== 'object') return new YamlScalar(value)
  const tree: Record<string, YamlNode> = Object.create(null)
  for (const [key, part] of Object.entries(value as JsonObject)) tree[key] = jsonToYaml(part)
  return tree
}
