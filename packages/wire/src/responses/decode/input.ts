import { WireError } from '../../wire-error.ts'
import type { DroppedFields } from '../../codec.ts'
import type {
  MediaPart,
  Part,
  PartPosition,
  SystemText,
  TextPart,
  ToolCallPart,
  ClientTool,
  ToolResultPart,
  Turn,
} from '../../conversation.ts'
import { customArguments } from '../../openai-tools.ts'
import { readBreakpoint } from '../../cache-marks.ts'
import { openSignatureEnvelope } from '../../signature-envelope.ts'
import { kindName, refuseField } from '../../field-check.ts'
import {
  readContentParts,
  type Fields,
  requireObject,
  requireArray,
  nullToUndefined,
  requireText,
} from '../../field.ts'
import type { Node, ScannedObject } from '../../json/scanned-object.ts'
import { inputOrEmpty } from '../../tool-input.ts'
import type { OfferedTools, ToolFunctionNames } from './tools.ts'
import { reportDropped } from '../dropped-fields.ts'
import { mcpCallAsFunction } from '../mcp-items.ts'
import { isGatewayItemId } from '../native/items.ts'
import { isSearch, readSearch } from '../search-item.ts'
import { readOpenAiPart } from '../../openai-parts.ts'

/** The system texts and turns of a conversation. */
export interface DecodedInput {
  readonly system: readonly SystemText[]
  readonly turns: readonly Turn[]
}

/** A turn to which items are still added. */
interface OpenTurn {
  readonly role: Turn['role']
  readonly parts: Part[]
  /** Index of the turn in the conversation, from 0. */
  readonly number: number
}

/**
 * Types of items that other protocols cannot express, with the names under which they are reported as
 * dropped.
 */
const DROPPED_ITEMS: ReadonlyMap<string, Parameters<typeof reportDropped>[1]> = new Map([
  ['compaction', 'input.compaction'],
  ['compaction_trigger', 'input.compaction'],
  ['context_compaction', 'input.compaction'],
  ['item_reference', 'input.item_reference'],
])

/** The position of an item in the JSON of a request, and its path for error messages. */
interface Place {
  readonly node: Node
  readonly path: string
}

/**
 * Reads `input`. Consecutive items of one role become one turn, except that a user's message directly after
 * another one begins a new turn. Otherwise a later request, with one message more, would change an earlier turn, and
 * the provider could not read it from its cache. System messages keep their position. The output of a tool moves to the user's turn after its call. Throws `invalid_request` with the
 * path of an invalid value, and for a call without output or an output without a call.
 */
export class InputReader {
  readonly #scan: ScannedObject
  readonly #reader: CallReader
  readonly #tools: OfferedTools
  readonly #system: SystemText[] = []
  readonly #turns: OpenTurn[] = []
  /** Calls whose output has not been read yet: the turn of each call, by the id of the call. */
  readonly #openCalls = new Map<string, OpenTurn>()

  constructor(scan: ScannedObject, reader: CallReader, tools: OfferedTools) {
    this.#scan = scan
    this.#reader = reader
    this.#tools = tools
  }

  /** Reads the instructions and all items. */
  read(): DecodedInput {
    const instructions = nullToUndefined(this.#scan.value('instructions'))
    if (instructions !== undefined) this.#readInstructions(instructions)
    const input = this.#scan.span('input')
    if (!input) return { system: this.#system, turns: this.#turns }
    if (this.#scan.kindOf(input.node) === 'string') {
      const parts = decodeContent(this.#scan.value('input'), 'input', this.#dropped)
      if (parts.length > 0) this.#turnOf('user').parts.push(...parts)
    } else
      for (const [index, node] of this.#scan.elements(input.node).entries())
        this.#readItem({ node, path: `input[${index}]` })
    const [waiting] = this.#openCalls.keys()
    if (waiting !== undefined) refuseCall('output', 'call', waiting)
    return { system: this.#system, turns: this.#turns.map(({ role, parts }) => ({ role, parts })) }
  }

  get #dropped(): DroppedFields {
    return this.#reader.dropped
  }

  /** Reads `instructions`, which some clients send as a list of items. */
  #readInstructions(value: unknown): void {
    if (typeof value === 'string')
      this.#system.push(...textsOf(decodeContent(value, 'instructions', this.#dropped), 'instructions'))
    else {
      const items = this.#scan.span('instructions')
      for (const [index, node] of (items ? this.#scan.elements(items.node) : []).entries())
        this.#readItem({ node, path: `instructions[${index}]` })
    }
  }

  #readItem(place: Place): void {
    const { node, path } = place
    if (this.#scan.kindOf(node) !== 'object') refuseField(path, 'an object', kindName(this.#scan, node))
    const item = requireObject(this.#scan.parse(node), path)
    const type =
      nullToUndefined(item['type']) === undefined
        ? typeOfUntyped(item)
        : requireText(item['type'], `${path}.type`)
    if (type === 'message') return this.#readMessage(item, path)
    if (type === 'reasoning') return this.#readReasoning(item, path)
    if (type === 'additional_tools')
      return this.#tools.read(this.#scan.memberOf(node, 'tools'), `${path}.tools`)
    if (isServerRun(type, item)) return reportDropped(this.#dropped, 'input.tools')
    // The gateway's tools that a request offers are in `tools`.
    if (type === 'mcp_list_tools' && isGatewayItemId(String(item['id']))) return undefined
    if (type === 'mcp_call') return this.#readMcpCall(item)
    const textOf = (member: string): string | undefined => {
      const found = this.#scan.memberOf(node, member)
      return found === undefined || this.#scan.kindOf(found) === 'null' ? undefined : this.#scan.textOf(found)
    }
    const call = readCall(type, item, path, { ...this.#reader, textOf })
    if (call) {
      const turn = this.#turnOf('assistant')
      turn.parts.push(call)
      this.#openCalls.set(call.id, turn)
      return undefined
    }
    if (isSearch(item)) {
      this.#turnOf('assistant').parts.push(readSearch(item))
      return undefined
    }
    const output = readOutput(type, item, path, this.#reader)
    if (!output)
      return reportDropped(
        this.#dropped,
        DROPPED_ITEMS.get(type) ?? (/_call|mcp_|program/.test(type) ? 'input.tools' : 'input.unknown'),
      )
    if (type === 'tool_search_output') this.#tools.read(this.#scan.memberOf(node, 'tools'), `${path}.tools`)
    const turn = this.#openCalls.get(output.callId)
    if (!turn) refuseCall('call', 'call output', output.callId)
    this.#openCalls.delete(output.callId)
    this.#turnBehind(turn).parts.push(output)
    return undefined
  }

  /** Reads a call that a provider or the gateway has made itself, and its result. */
  #readMcpCall(item: Fields): void {
    const { callId, name, input, output, isError } = mcpCallAsFunction(item)
    const turn = this.#turnOf('assistant')
    const form = { type: 'function', name } as const
    turn.parts.push({
      kind: 'tool-call',
      id: callId,
      name: this.#reader.names.nameOf(form),
      input: inputOrEmpty(input),
    })
    this.#turnBehind(turn).parts.push({ kind: 'tool-result', callId, parts: textParts(output), isError })
  }

  #readMessage(item: Fields, path: string): void {
    const role = requireText(item['role'], `${path}.role`)
    const parts = decodeContent(item['content'], `${path}.content`, this.#dropped)
    if (nullToUndefined(item['phase']) !== undefined) reportDropped(this.#dropped, 'input.phase')
    switch (role) {
      case 'user':
      case 'assistant':
        if (parts.length > 0) this.#turnOfMessage(role).parts.push(...parts)
        return
      case 'system':
      case 'developer': {
        const at = this.#place
        this.#system.push(...textsOf(parts, `${path}.content`).map((part) => (at ? { ...part, at } : part)))
        return
      }
      default:
        refuseField(`${path}.role`, 'user, assistant, system or developer', 'another role')
    }
  }

  /**
   * Reads the thoughts of a reasoning item: their summaries, or the complete text if there are no summaries.
   */
  #readReasoning(item: Fields, path: string): void {
    const summary = requireArray(nullToUndefined(item['summary']) ?? [], `${path}.summary`)
    const content = requireArray(nullToUndefined(item['content']) ?? [], `${path}.content`)
    const texts = (summary.length > 0 ? summary : content).map(
      (part, index) => requireObject(part, `${path}[${index}]`)['text'],
    )
    const text = texts.filter((piece) => typeof piece === 'string').join('\n\n')
    const encrypted = nullToUndefined(item['encrypted_content'])
    const enclosed =
      encrypted === undefined
        ? undefined
        : openSignatureEnvelope(requireText(encrypted, `${path}.encrypted_content`), 'responses')
    if (enclosed && 'opaque' in enclosed) this.#turnOf('assistant').parts.push(enclosed.opaque)
    else if (text !== '' || enclosed)
      this.#turnOf('assistant').parts.push({ kind: 'thinking', text, ...enclosed })
  }

  /**
   * Position in the conversation of a system message that is read now; undefined before the first turn.
   * Directly after a tool result it is within the turn of the result, otherwise before the next turn.
   */
  get #place(): PartPosition | undefined {
    const last = this.#turns.at(-1)
    if (!last) return undefined
    if (last.role === 'user' && last.parts.at(-1)?.kind === 'tool-result')
      return { turn: last.number, part: last.parts.length }
    return { turn: this.#turns.length, part: 0 }
  }

  /**
   * Returns the turn to which a message belongs. A user's message directly after another one begins a new
   * turn.
   */
  #turnOfMessage(role: Turn['role']): OpenTurn {
    const last = this.#turns.at(-1)
    const isNew = role === 'user' && last?.role === role && last.parts.at(-1)?.kind !== 'tool-result'
    return isNew ? this.#newTurn(role) : this.#turnOf(role)
  }

  #turnOf(role: Turn['role']): OpenTurn {
    const last = this.#turns.at(-1)
    return last?.role === role ? last : this.#newTurn(role)
  }

  #newTurn(role: Turn['role']): OpenTurn {
    const turn: OpenTurn = { role, parts: [], number: this.#turns.length }
    this.#turns.push(turn)
    return turn
  }

  #turnBehind(turn: OpenTurn): OpenTurn {
    const next = this.#turns[turn.number + 1]
    if (next) return next
    return this.#turnOf('user')
  }
}

/** Returns the type of an item that states none: it is a message, or a reference to another item. */
function typeOfUntyped(item: Fields): string {
  if (item['role'] !== undefined) return 'message'
  return item['id'] === undefined ? '' : 'item_reference'
}

/** Whether the provider itself has run a tool call. */
function isServerRun(type: string, item: Fields): boolean {
  const environment = item['environment'] as { readonly type?: unknown } | null | undefined
  if (type === 'tool_search_call' || type === 'tool_search_output') return item['execution'] !== 'client'
  return type === 'shell_call' && String(environment?.type).startsWith('container')
}

function textsOf(parts: readonly Part[], path: string): TextPart[] {
  return parts.map((part) => (part.kind === 'text' ? part : refuseField(path, 'text', part.kind)))
}

function refuseCall(missing: string, given: string, id: string): never {
  const named = /^[\w-]{1,64}$/.test(id) ? ` '${id}'` : ''
  throw new WireError('invalid_request', `No tool ${missing} found for the tool ${given}${named} in 'input'.`)
}

/**
 * What is needed to read tool calls and their outputs: the function names of the tools, and the list of
 * dropped fields.
 */
interface CallReader {
  readonly names: ToolFunctionNames
  readonly dropped: DroppedFields
}

type Item = Fields

/**
 * Reads a tool call according to the type of its item. `textOf` returns a member of the item as it was
 * written.
 */
function readCall(
  type: string,
  item: Item,
  path: string,
  { names, textOf }: CallReader & { readonly textOf: (member: string) => string | undefined },
): ToolCallPart | undefined {
  const part = (form: ClientTool, input: string): ToolCallPart => ({
    kind: 'tool-call',
    id: callId(item, path),
    name: names.nameOf(form),
    input,
  })
  switch (type) {
    case 'function_call':
      return part(named('function', item, path), inputOrEmpty(optionalText(item, 'arguments', path)))
    case 'custom_tool_call':
      return part(named('custom', item, path), customArguments(requireText(item['input'], `${path}.input`)))
    case 'local_shell_call':
    case 'shell_call':
      requireObject(item['action'], `${path}.action`)
      return part(typed(type), ownAction(item['action'], textOf('action')))
    case 'apply_patch_call':
      requireObject(item['operation'], `${path}.operation`)
      return part(typed(type), textOf('operation') ?? '{}')
    case 'tool_search_call':
      return part(typed(type), textOf('arguments') ?? '{}')
    default:
      return undefined
  }
}

/** Reads the output of a tool call according to the type of its item. */
function readOutput(
  type: string,
  item: Item,
  path: string,
  { dropped }: CallReader,
): ToolResultPart | undefined {
  const result = (parts: ToolResultPart['parts'], id = callId(item, path)): ToolResultPart => ({
    kind: 'tool-result',
    callId: id,
    parts,
    isError: item['status'] === 'failed',
  })
  switch (type) {
    case 'function_call_output':
    case 'custom_tool_call_output':
    case 'apply_patch_call_output':
      return result(decodeOutput(item['output'], `${path}.output`, dropped))
    case 'local_shell_call_output':
      // In an item of this type, `id` may be the id of the call.
      return result(
        decodeOutput(item['output'], `${path}.output`, dropped),
        requireText(item['call_id'] ?? item['id'], `${path}.id`),
      )
    case 'shell_call_output':
      return result(textParts(shellOutput(item['output'], `${path}.output`)))
    case 'tool_search_output':
      return result(textParts(foundTools(item['tools'], `${path}.tools`)))
    default:
      return undefined
  }
}

/** The tool of a call, as the client declared it. */
function named(type: 'function' | 'custom', item: Item, path: string): ClientTool {
  const namespace = nullToUndefined(item['namespace'])
  return {
    type,
    name: requireText(item['name'], `${path}.name`),
    ...(namespace !== undefined && { namespace: requireText(namespace, `${path}.namespace`) }),
  }
}

function typed(itemType: `${Exclude<ClientTool['type'], 'function' | 'custom'>}_call`): ClientTool {
  const type = itemType.slice(0, -'_call'.length) as ClientTool['type']
  return { type, name: type }
}

function callId(item: Item, path: string): string {
  return requireText(item['call_id'], `${path}.call_id`)
}

/** Returns the JSON of an action as the model wrote it: without `type`, which is always the same, and nulls. */
function ownAction(action: unknown, text: string | undefined): string {
  const fields = Object.entries(action as Fields)
  const own = fields.filter(([name, value]) => name !== 'type' && value !== null)
  return own.length === fields.length ? (text ?? '{}') : JSON.stringify(Object.fromEntries(own))
}

/** Formats the output of each command as a shell would show it. */
function shellOutput(value: unknown, path: string): string {
  if (typeof value === 'string') return value
  return requireArray(value, path)
    .map((entry, index) => {
      const { stdout, stderr, outcome } = requireObject(entry, `${path}[${index}]`)
      const { type, exit_code: code } = requireObject(
        nullToUndefined(outcome) ?? {},
        `${path}[${index}].outcome`,
      )
      const end = type === 'timeout' ? 'timed out' : typeof code === 'number' ? `exit code ${code}` : ''
      return [stdout, stderr, end && `(${end})`]
        .filter((text) => typeof text === 'string' && text !== '')
        .join('\n')
    })
    .join('\n')
}

function foundTools(value: unknown, path: string): string {
  const names = requireArray(nullToUndefined(value) ?? [], path).map(
    (tool, index) => requireObject(tool, `${path}[${index}]`)['name'],
  )
  return `Found tools: ${names.filter((name) => typeof name === 'string').join(', ') || 'none'}`
}

function textParts(text: string): ToolResultPart['parts'] {
  return text === '' ? [] : [{ kind: 'text', text }]
}

function optionalText(item: Item, key: string, path: string): string {
  const value = nullToUndefined(item[key])
  return value === undefined ? '' : requireText(value, `${path}.${key}`)
}

/**
 * Decodes the parts of content. Parts of unknown types are dropped and reported. Throws `invalid_request` if
 * a part's content does not fit its type.
 */
function decodeContent(content: unknown, path: string, dropped: DroppedFields): (TextPart | MediaPart)[] {
  return decodeOutput(content, path, dropped).filter((part) => {
    if (part.kind === 'opaque') reportDropped(dropped, 'input.unknown')
    return part.kind !== 'opaque'
  })
}

/** Decodes the output of a tool. Parts of unknown types are opaque, so that an output of them alone does not become empty. */
function decodeOutput(content: unknown, path: string, dropped: DroppedFields): ToolResultPart['parts'] {
  return readContentParts(content, path, (type, part, at): ToolResultPart['parts'] => {
    const annotations = part['annotations']
    if (Array.isArray(annotations) && annotations.length > 0) reportDropped(dropped, 'input.annotations')
    return (
      readOpenAiPart(type, part, at, readBreakpoint) ?? [
        { kind: 'opaque', protocol: 'responses', value: part },
      ]
    )
  })
}
