import type { Json, JsonObject } from '../domain/stored-configuration.ts'
import { type Tree, Written } from './yaml-node.ts'

/** JSON as the tree that a file saying the same would be. Variables are not put in. */
export function treeOfJson(value: Json): Tree {
  if (value === null) return undefined
  if (Array.isArray(value)) return (value as readonly Json[]).map(treeOfJson)
  if (typeof value !== 'object') return new Written(value)
  const tree: Record<string, Tree> = Object.create(null)
  for (const [key, part] of Object.entries(value as JsonObject)) tree[key] = treeOfJson(part)
  return tree
}
