import type { OpaquePart, ToolCallPart } from '../conversation.ts'
import { inputOrEmpty } from '../tool-input.ts'
import { type Fields, fieldsAt, present, textAt } from '../field.ts'

/** Reads an assistant's calls and remembers what their results have to know about them. */
export class CallReader {
  readonly #opaqueIds = new Set<string>()
  /** Legacy calls that have no result yet: names in the order of the calls, with the ids they were given. */
  readonly #legacy: { readonly name: string; readonly id: string }[] = []
  #legacyCount = 0

  /**
   * An element of `tool_calls`; a call of a kind that only chat knows is opaque, and so will its result be.
   */
  readCall(value: unknown, path: string): ToolCallPart | OpaquePart {
    const call = fieldsAt(value, path)
    const id = textAt(call['id'], `${path}.id`)
    const type = present(call['type'])
    if (type !== undefined && textAt(type, `${path}.type`) !== 'function') {
      this.#opaqueIds.add(id)
      return { kind: 'opaque', protocol: 'chat', value }
    }
    return functionCall(id, fieldsAt(call['function'], `${path}.function`), `${path}.function`)
  }

  isOpaque(id: string): boolean {
    return this.#opaqueIds.has(id)
  }

  /** `function_call`, which has no id: it gets one by its number. */
  readLegacyCall(value: unknown, path: string): ToolCallPart {
    const part = functionCall(this.#nextId(), fieldsAt(value, path), path)
    this.#legacy.push({ name: part.name, id: part.id })
    return part
  }

  /**
   * The id of the call that a message of role `function` answers: the first of that name that has no answer.
   */
  legacyId(name: string): string {
    const at = this.#legacy.findIndex((call) => call.name === name)
    return at < 0 ? this.#nextId() : (this.#legacy.splice(at, 1)[0]?.id ?? this.#nextId())
  }

  #nextId(): string {
    return `call_function_${this.#legacyCount++}`
  }
}

/** Arguments stay the text that the model wrote. */
function functionCall(id: string, call: Fields, path: string): ToolCallPart {
  const input = present(call['arguments'])
  return {
    kind: 'tool-call',
    id,
    name: textAt(call['name'], `${path}.name`),
    input: inputOrEmpty(input === undefined ? '' : textAt(input, `${path}.arguments`)),
  }
}
