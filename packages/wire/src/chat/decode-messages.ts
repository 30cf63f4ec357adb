import type { Dropped } from '../codec.ts'
import type {
  Cache,
  OpaquePart,
  Part,
  Place,
  SystemText,
  ToolCallPart,
  ToolResultPart,
  Turn,
} from '../conversation.ts'
import { customArguments } from '../custom-tool.ts'
import { refuse } from '../field-check.ts'
import { type Fields, fieldsAt, listAt, present, textAt } from '../field.ts'
import { inputOrEmpty } from '../tool-input.ts'
import { cacheOf } from './cache-control.ts'
import { type ContentPart, decodeContent } from './decode-part.ts'
import { drop, type DroppedName } from './dropped-fields.ts'
import { isOwnDetail, readThoughts } from './reasoning-details.ts'
import { signatureIn } from './thought-signature.ts'

/** System texts and turns of a conversation. */
export interface Transcript {
  readonly system: readonly SystemText[]
  readonly turns: readonly Turn[]
}

/** Turn that is still being read. */
interface OpenTurn {
  readonly role: Turn['role']
  readonly parts: Part[]
}

/**
 * Members of a message that are read, or that only repeat known facts, such as a tool's name or the
 * annotations of an earlier reply.
 */
const READ_FIELDS: ReadonlySet<string> = new Set([
  'role',
  'content',
  'refusal',
  'reasoning_content',
  'reasoning',
  'reasoning_details',
  'tool_calls',
  'tool_call_id',
  'function_call',
  'cache_control',
  'annotations',
])

const DROPPED_FIELDS: ReadonlyMap<string, DroppedName> = new Map([
  ['name', 'messages.name'],
  ['audio', 'messages.audio'],
])

/**
 * Decodes `messages`; `docs/api.md: Chat completions`, translations. System and developer texts are
 * collected, in order. Consecutive tool results form one user turn together with the user's next text. Empty
 * messages form no turn. A result without its call is kept, so that the upstream refuses it. Throws
 * `invalid_request` with the path of an unreadable value.
 */
export function decodeMessages(messages: readonly unknown[], dropped: Dropped): Transcript {
  const reader = new MessagesReader(dropped)
  for (const [index, message] of messages.entries()) {
    const path = `messages[${index}]`
    reader.read(fieldsAt(message, path), path)
  }
  return reader.transcript
}

type RoleReader = (reader: MessagesReader, message: Fields, path: string) => void

class MessagesReader {
  readonly #system: SystemText[] = []
  readonly #turns: OpenTurn[] = []
  readonly #calls = new CallReader()
  /** User turn that began with tool results; the user's next text is added to it. */
  #results: OpenTurn | undefined
  readonly #dropped: Dropped

  constructor(dropped: Dropped) {
    this.#dropped = dropped
  }

  get transcript(): Transcript {
    return { system: this.#system, turns: this.#turns }
  }

  read(message: Fields, path: string): void {
    const role = textAt(message['role'], `${path}.role`)
    const read = MessagesReader.#ROLES.get(role)
    if (!read) refuse(`${path}.role`, [...MessagesReader.#ROLES.keys()].join(', '), 'another role')
    read(this, message, path)
    for (const [key, value] of Object.entries(message)) {
      if (READ_FIELDS.has(key) || isEmptyValue(value)) continue
      if (key === 'name' && (role === 'tool' || role === 'function')) continue
      drop(this.#dropped, DROPPED_FIELDS.get(key) ?? 'unknown')
    }
  }

  static readonly #ROLES: ReadonlyMap<string, RoleReader> = new Map<string, RoleReader>([
    ['system', (reader, message, path) => reader.#readSystem(message, path)],
    ['developer', (reader, message, path) => reader.#readSystem(message, path)],
    ['user', (reader, message, path) => reader.#readUser(message, path)],
    ['assistant', (reader, message, path) => reader.#readAssistant(message, path)],
    ['tool', (reader, message, path) => reader.#readTool(message, path)],
    ['function', (reader, message, path) => reader.#readFunction(message, path)],
  ])

  #readSystem(message: Fields, path: string): void {
    const at = this.#place
    for (const part of this.#content(message, path)) {
      if (part.kind === 'text') this.#system.push(at ? { ...part, at } : part)
      else if (part.kind === 'opaque') drop(this.#dropped, 'messages.content')
      else refuse(`${path}.content`, 'text', part.kind)
    }
  }

  /** Position of the next part; undefined before the first turn. */
  get #place(): Place | undefined {
    const { length } = this.#turns
    if (this.#results) return { turn: length - 1, part: this.#results.parts.length }
    return length === 0 ? undefined : { turn: length, part: 0 }
  }

  #readUser(message: Fields, path: string): void {
    const parts = this.#content(message, path)
    if (this.#results) this.#results.parts.push(...parts)
    else if (parts.length > 0) this.#turns.push({ role: 'user', parts })
    this.#results = undefined
  }

  #readAssistant(message: Fields, path: string): void {
    this.#results = undefined
    const parts: Part[] = []
    const thought =
      optionalText(message, 'reasoning_content', path) || optionalText(message, 'reasoning', path)
    const details = present(message['reasoning_details']) ?? []
    const given = Array.isArray(details) ? (details as readonly unknown[]) : []
    if (given.some((detail) => !isOwnDetail(detail))) drop(this.#dropped, 'unknown')
    const thoughts = readThoughts(thought, given)
    parts.push(...thoughts.first)
    parts.push(...decodeContent(message['content'], `${path}.content`, this.#dropped))
    const refusal = optionalText(message, 'refusal', path)
    if (refusal !== '') parts.push({ kind: 'text', text: refusal })
    const calls = present(message['tool_calls'])
    if (calls !== undefined) {
      for (const [index, value] of listAt(calls, `${path}.tool_calls`).entries()) {
        const call = this.#calls.readCall(value, `${path}.tool_calls[${index}]`)
        parts.push(...thoughts.before(index), ...signatureIn(value as Fields), call)
      }
    }
    parts.push(...thoughts.after(Array.isArray(calls) ? calls.length : 0))
    const legacy = present(message['function_call'])
    if (legacy !== undefined) parts.push(this.#calls.readLegacyCall(legacy, `${path}.function_call`))
    markLast(parts, cacheOf(message, path).cache)
    if (parts.length > 0) this.#turns.push({ role: 'assistant', parts })
  }

  #readTool(message: Fields, path: string): void {
    const callId = textAt(message['tool_call_id'], `${path}.tool_call_id`)
    if (this.#calls.isOpaque(callId)) this.#addResult({ kind: 'opaque', protocol: 'chat', value: message })
    else this.#addResult(this.#result(callId, message, path))
  }

  #readFunction(message: Fields, path: string): void {
    const callId = this.#calls.legacyId(textAt(message['name'], `${path}.name`))
    this.#addResult(this.#result(callId, message, path))
  }

  #result(callId: string, message: Fields, path: string): ToolResultPart {
    const parts = this.#content(message, path)
    const kept = parts.filter((part) => part.kind !== 'thinking')
    return { kind: 'tool-result', callId, parts: kept, isError: false }
  }

  #addResult(part: Part): void {
    if (!this.#results) this.#turns.push((this.#results = { role: 'user', parts: [] }))
    this.#results.parts.push(part)
  }

  /** Decodes content. The cache mark of the message moves to its last part. */
  #content(message: Fields, path: string): ContentPart[] {
    const parts = decodeContent(message['content'], `${path}.content`, this.#dropped)
    markLast(parts, cacheOf(message, path).cache)
    return parts
  }
}

/** Reports whether a value is one that clients send back for an unset field. */
function isEmptyValue(value: unknown): boolean {
  return value === null || value === '' || value === false || (Array.isArray(value) && value.length === 0)
}

function optionalText(message: Fields, key: string, path: string): string {
  const value = present(message[key])
  return value === undefined ? '' : textAt(value, `${path}.${key}`)
}

function markLast(parts: Part[], cache: Cache | undefined): void {
  const last = parts.at(-1)
  if (!cache || !last || last.kind === 'opaque' || last.kind === 'thinking' || last.kind === 'search') return
  parts[parts.length - 1] = { ...last, cache }
}

/** Reads an assistant's calls and keeps what is needed to read their results. */
class CallReader {
  readonly #opaqueIds = new Set<string>()
  /** Legacy calls without a result: their names, in order, with the ids created for them. */
  readonly #legacy: { readonly name: string; readonly id: string }[] = []
  #legacyCount = 0

  /**
   * Reads an element of `tool_calls`. A call of a kind that only chat has becomes an opaque part, and so does
   * its result.
   */
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

  /** Reads a `function_call`, and creates its id from its number. */
  readLegacyCall(value: unknown, path: string): ToolCallPart {
    const part = functionCall(this.#nextId(), fieldsAt(value, path), path)
    this.#legacy.push({ name: part.name, id: part.id })
    return part
  }

  /**
   * Finds the id of the call that a message of role `function` answers: the first unanswered call of that
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

/** Reads a call of a custom tool. Its text becomes the only argument of a function. */
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

/** Reads a call. Its arguments remain the text that the model wrote. */
function functionCall(id: string, call: Fields, path: string): ToolCallPart {
  const input = present(call['arguments'])
  return {
    kind: 'tool-call',
    id,
    name: textAt(call['name'], `${path}.name`),
    input: inputOrEmpty(input === undefined ? '' : textAt(input, `${path}.arguments`)),
  }
}
