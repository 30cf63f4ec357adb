import type { OpaquePart, ToolCallPart } from '../conversation.ts'
import { customArguments } from '../custom-tool.ts'
import { inputOrEmpty } from '../tool-input.ts'
import { type Fields, fieldsAt, present, textAt } from '../field.ts'

/** Reads an assistant's calls, and remembers what their results need. */
export class CallReader {
  readonly #opaqueIds = new Set<string>()
  /** Legacy calls without a result: names in the order of the calls, with their created ids. */
  readonly #legacy: { readonly name: string; readonly id: string }[] = []
  #legacyCount = 0

  /** Reads an element of `tool_calls`; a call of a kind that only chat knows is opaque, as is its result. */
  readCall(value: unknown, path: string): ToolCallPart | OpaquePart {
    const call = fieldsAt(value, path)
    const id = textAt(call['id'], `${path}.id`)
    const type = present(call['type'])
    const kind = type === undefined ? 'function' : textAt(type, `${path}.type`)
    if (kind === 'custom') return customCall(id, fieldsAt(call['custom'], `${path}.custom`), `${path}.custom`)
    if (kind !== 'function') {
      this.#opaqueIds.add(id)
      return { kind: 'opaque', protocol: 'chat', value }
    }
    return functionCall(id, fieldsAt(call['function'], `${path}.function`), `${path}.function`)
  }

  isOpaque(id: string): boolean {
    return this.#opaqueIds.has(id)
  }

  /** Reads a `function_call`; its id is created from its number. */
  readLegacyCall(value: unknown, path: string): ToolCallPart {
    const part = functionCall(this.#nextId(), fieldsAt(value, path), path)
    this.#legacy.push({ name: part.name, id: part.id })
    return part
  }

  /**
   * Finds the id of the call that a message of role `function` answers: the first unanswered one of that
   * name.
   */
  legacyId(name: string): string {
    const at = this.#legacy.findIndex((call) => call.name === name)
    return at < 0 ? this.#nextId() : (this.#legacy.splice(at, 1)[0]?.id ?? this.#nextId())
  }

  #nextId(): string {
    return `call_function_${this.#legacyCount++}`
  }
}

/** Reads a call of a custom tool; its text is the argument of a function. */
function customCall(id: string, call: Fields, path: string): ToolCallPart {
  const input = present(call['input'])
  return {
    kind: 'tool-call',
    id,
    name: textAt(call['name'], `${path}.name`),
    input: customArguments(input === undefined ? '' : textAt(input, `${path}.input`)),
    isCustom: true,
  }
}

/** Reads a call; its arguments stay the text that the model wrote. */
function functionCall(id: string, call: Fields, path: string): ToolCallPart {
  const input = present(call['arguments'])
  return {
    kind: 'tool-call',
    id,
    name: textAt(call['name'], `${path}.name`),
    input: inputOrEmpty(input === undefined ? '' : textAt(input, `${path}.arguments`)),
  }
}
