import type { ToolForm } from '../conversation.ts'

/** Maximum length of a function name in chat and messages. */
const MAX_NAME = 64
const SEPARATOR = '__'

/** Name of a tool as the client knows it, with its namespace. */
type Named = Pick<ToolForm, 'type' | 'name' | 'namespace'>

/**
 * Names of the tools of one request as functions. A namespace and a name are joined to one name that other
 * dialects accept. Both may contain the separator, so that only this map can separate them. The same request
 * always gets the same names.
 */
export class ToolNames {
  readonly #byKey = new Map<string, string>()
  readonly #taken = new Set<string>()
  /** Last number that was appended to make a duplicate name unique. */
  readonly #last = new Map<string, number>()

  /**
   * Returns the function name of a tool. The first tool that needs a name gets it; others get it with a
   * number.
   */
  nameOf(tool: Named): string {
    const key = JSON.stringify([tool.type === 'function' ? '' : tool.type, tool.namespace ?? '', tool.name])
    const known = this.#byKey.get(key)
    if (known !== undefined) return known
    const wanted = tool.namespace === undefined ? tool.name : `${tool.namespace}${SEPARATOR}${tool.name}`
    const fitting = tool.namespace === undefined ? wanted : fit(wanted)
    const name = this.#taken.has(fitting) ? this.#other(fitting) : fitting
    this.#byKey.set(key, name)
    this.#taken.add(name)
    return name
  }

  #other(name: string): string {
    for (let number = this.#last.get(name) ?? 2; ; number++) {
      const suffix = `_${number}`
      const other = name.slice(0, MAX_NAME - suffix.length) + suffix
      if (this.#taken.has(other)) continue
      this.#last.set(name, number)
      return other
    }
  }
}

/** Replaces characters that other dialects refuse, and shortens the name to their maximum. */
function fit(name: string): string {
  const plain = name.replaceAll(/[^\w-]/g, '_')
  if (plain.length <= MAX_NAME) return plain
  const suffix = `_${hash(name)}`
  return plain.slice(0, MAX_NAME - suffix.length) + suffix
}

/** FNV-1a, 32 bits. It distinguishes long names with the same beginning. */
function hash(text: string): string {
  let value = 0x81_1c_9d_c5
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01_00_01_93)
  return (value >>> 0).toString(36)
}
