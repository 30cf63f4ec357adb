import type { ToolForm } from '../conversation.ts'

/** The longest name of a function that chat and messages take. */
const MAX_NAME = 64
const SEPARATOR = '__'

/** Name of a tool that the client uses, with its namespace. */
type Named = Pick<ToolForm, 'type' | 'name' | 'namespace'>

/**
 * The names that the tools of one request go by as functions: a namespace and a name become one, which other
 * wires take. Both may hold the separator, so that only this map can tell them apart again. The same request
 * gets the same names.
 */
export class ToolNames {
  readonly #byKey = new Map<string, string>()
  readonly #taken = new Set<string>()
  /** The last number that was given to others who wanted a name. */
  readonly #last = new Map<string, number>()

  /** The function's name for a tool; the first that asks for a name has it. */
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

/** A name with the characters that other wires take, and no longer than they take it. */
function fit(name: string): string {
  const plain = name.replaceAll(/[^\w-]/g, '_')
  if (plain.length <= MAX_NAME) return plain
  const suffix = `_${hash(name)}`
  return plain.slice(0, MAX_NAME - suffix.length) + suffix
}

/** FNV-1a, 32 bits: names that begin alike stay apart. */
function hash(text: string): string {
  let value = 0x81_1c_9d_c5
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01_00_01_93)
  return (value >>> 0).toString(36)
}
