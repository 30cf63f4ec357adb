import { hostname } from 'node:os'

/** Name of a node, as people see it: that of its machine, and the beginning of its id. */
export function nodeName(id: string): string {
  return `${hostname()}-${id.slice(0, 8)}`
}
