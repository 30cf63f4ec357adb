import { hostname } from 'node:os'

/** Name of a node for people: the name of its machine, and the beginning of its id. */
export function nodeName(id: string): string {
  return `${hostname()}-${id.slice(0, 8)}`
}
