import { withoutBillingHeader } from '../../billing-header.ts'
import { readChoiceCount } from '../../reply.ts'
import type { DroppedFields } from '../../codec.ts'
import type {
  CacheMark,
  Conversation,
  MediaPart,
  OpaquePart,
  Part,
  PartPosition,
  SystemText,
  TextPart,
  ThinkingPart,
  ToolCallPart,
  ToolResultPart,
  Turn,
} from '../../conversation.ts'
import { asRecord } from '../../json/record.ts'
import type { ScannedObject } from '../../json/scanned-object.ts'
import { readLogprobsRequest } from '../../logprobs.ts'
import { sharedFields } from '../../shared-fields.ts'
import { withCacheLifetimeOfRequest } from '../../cache-marks.ts'
import { reportDropped, type DroppedName, reportDroppedTopLevelFields } from '../dropped-fields.ts'
import {
  readContentParts,
  type Fields,
  requireObject,
  requireArray,
  nullToUndefined,
  requireText,
} from '../../field.ts'
import { decodeOutputFormat } from '../output-format.ts'
import { decodeThinkingConfig } from '../../thinking.ts'
import { decodeThinking } from '../thinking.ts'
import { decodeToolChoice, decodeTools, decodeWebSearch } from '../tools.ts'
import { customArguments } from '../../openai-tools.ts'
import { refuseField } from '../../field-check.ts'
import { inputOrEmpty } from '../../tool-input.ts'
import { readCacheDirective } from '../cache-control.ts'
import { isDetailOfGateway, readThoughts, readCallSignature } from '../reasoning-details.ts'
import { readOpenAiPart } from '../../openai-parts.ts'
import { outputMaximumIn } from '../native/request.ts'
import { generatedText } from '../answer.ts'

/**
 * Decodes a checked chat request; `docs/api.md: Chat completions`. Fields that the neutral form cannot
 * express are reported in `dropped`. Throws `invalid_request` with the path of an unreadable value.
 */
export function decodeRequest(scan: ScannedObject, dropped: DroppedFields): Conversation {
  const value = (key: string): unknown => nullToUndefined(scan.value(key))
  const number = (key: string): number | undefined => value(key) as number | undefined
  const stop = value('stop') ?? []
  const search = value('web_search_options')
  reportDroppedTopLevelFields(scan, dropped)
  const conversation: Conversation = {
    model: value('model') as string,
    stream: value('stream') === true,
    ...decodeMessages(requireArray(value('messages'), 'messages'), dropped),
    ...decodeToolChoice(value('tool_choice'), decodeTools(scan, dropped)),
    parallelTools: value('parallel_tool_calls') as boolean | undefined,
    maxTokens: outputMaximumIn(scan),
    temperature: number('temperature'),
    topP: number('top_p'),
    topK: number('top_k'),
    seed: number('seed'),
    presencePenalty: number('presence_penalty'),
    frequencyPenalty: number('frequency_penalty'),
    stop: (Array.isArray(stop) ? (stop as string[]) : [stop as string]).filter((text) => text !== ''),
    thinking:
      decodeThinkingConfig(googleThinking(value('extra_body')), 'extra_body.google.thinking_config') ??
      decodeThinking(value, dropped),
    // Chat has no setting for it: clients show what they get as `reasoning_content`.
    showsThoughts: true,
    outputFormat: decodeOutputFormat(scan),
    webSearch: search === undefined ? undefined : decodeWebSearch(search, dropped),
    ...readChoiceCount('n', value('n')),
    ...readLogprobsRequest(value('logprobs') === true, value('top_logprobs')),
    includeUsage: asRecord(value('stream_options'))?.['include_usage'] === true,
    ...sharedFields(scan, dropped),
  }
  return withCacheLifetimeOfRequest(conversation, value('prompt_cache_options'))
}

/** Settings of thinking, in the form in which clients of Google's chat endpoint send them. */
function googleThinking(extraBody: unknown): unknown {
  return nullToUndefined(asRecord(asRecord(extraBody)?.['google'])?.['thinking_config'])
}

/** The system texts and turns of a conversation. */
interface Transcript {
  readonly system: readonly SystemText[]
  readonly turns: readonly Turn[]
}

/** Turn that is still being read. */
interface OpenTurn {
  readonly role: Turn['role']
  readonly parts: Part[]
}

/**
 * Members of a message that are read, or that may be ignored because they only repeat known facts.
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
])

const DROPPED_FIELDS: ReadonlyMap<string, DroppedName> = new Map([
  ['annotations', 'messages.annotations'],
  ['name', 'messages.name'],
  ['audio', 'messages.audio'],
])

/**
 * Decodes `messages`, as the translations in `docs/api.md: Chat completions` describe. System and developer
 * texts are collected in order. Consecutive tool results and the user's next text form one user turn. Empty
 * messages form no turn. A result without its call is kept, so that the upstream refuses it. Throws
 * `invalid_request` with the path of an unreadable value.
 */
function decodeMessages(messages: readonly unknown[], dropped: DroppedFields): Transcript {
  const reader = new MessagesReader(dropped)
  for (const [index, message] of messages.entries()) {
    const path = `messages[${index}]`
    reader.read(requireObject(message, path), path)
  }
  return reader.transcript
}

type RoleReader = (reader: MessagesReader, message: Fields, path: string) => void

class MessagesReader {
  readonly #system: SystemText[] = []
  readonly #turns: OpenTurn[] = []
  readonly #calls = new CallReader()
  /** A user turn that began with tool results, if the user's next text must be added to it. */
  #results: OpenTurn | undefined
  readonly #dropped: DroppedFields

  constructor(dropped: DroppedFields) {
    this.#dropped = dropped
  }

  get transcript(): Transcript {
    return { system: withoutBillingHeader(this.#system, this.#dropped), turns: this.#turns }
  }

  read(message: Fields, path: string): void {
    const role = requireText(message['role'], `${path}.role`)
    const read = MessagesReader.#ROLES.get(role)
    if (!read) refuseField(`${path}.role`, [...MessagesReader.#ROLES.keys()].join(', '), 'another role')
    read(this, message, path)
    for (const [key, value] of Object.entries(message)) {
      if (READ_FIELDS.has(key) || isEmptyValue(value)) continue
      if (key === 'name' && (role === 'tool' || role === 'function')) continue
      reportDropped(this.#dropped, DROPPED_FIELDS.get(key) ?? 'unknown')
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
      else if (part.kind === 'opaque') reportDropped(this.#dropped, 'messages.content')
      else refuseField(`${path}.content`, 'text', part.kind)
    }
  }

  /**
   * Position of the next part, which a system text between messages gets; undefined before the first turn.
   */
  get #place(): PartPosition | undefined {
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
    const details = nullToUndefined(message['reasoning_details']) ?? []
    const given = Array.isArray(details) ? (details as readonly unknown[]) : []
    if (given.some((detail) => !isDetailOfGateway(detail))) reportDropped(this.#dropped, 'unknown')
    const thoughts = readThoughts(thought, given)
    parts.push(...thoughts.first)
    parts.push(...decodeContent(message['content'], `${path}.content`))
    const refusal = optionalText(message, 'refusal', path)
    if (refusal !== '') parts.push({ kind: 'text', text: refusal })
    const calls = nullToUndefined(message['tool_calls'])
    if (calls !== undefined) {
      for (const [index, value] of requireArray(calls, `${path}.tool_calls`).entries()) {
        const call = this.#calls.readCall(value, `${path}.tool_calls[${index}]`)
        parts.push(...thoughts.before(index), ...readCallSignature(value as Fields), call)
      }
    }
    parts.push(...thoughts.after(Array.isArray(calls) ? calls.length : 0))
    const legacy = nullToUndefined(message['function_call'])
    if (legacy !== undefined) parts.push(this.#calls.readLegacyCall(legacy, `${path}.function_call`))
    markLast(parts, readCacheDirective(message, path).cache)
    if (parts.length > 0) this.#turns.push({ role: 'assistant', parts })
  }

  #readTool(message: Fields, path: string): void {
    const callId = requireText(message['tool_call_id'], `${path}.tool_call_id`)
    if (this.#calls.isOpaque(callId)) this.#addResult({ kind: 'opaque', protocol: 'chat', value: message })
    else this.#addResult(this.#result(callId, message, path))
  }

  #readFunction(message: Fields, path: string): void {
    const callId = this.#calls.legacyId(requireText(message['name'], `${path}.name`))
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

  /** Decodes content. A cache mark of the whole message is moved to its last part. */
  #content(message: Fields, path: string): ContentPart[] {
    const parts = decodeContent(message['content'], `${path}.content`)
    markLast(parts, readCacheDirective(message, path).cache)
    return parts
  }
}

/**
 * Whether a value means that a field is not set: some clients send null, false, an empty text or an empty
 * list instead of leaving it out.
 */
function isEmptyValue(value: unknown): boolean {
  return value === null || value === '' || value === false || (Array.isArray(value) && value.length === 0)
}

function optionalText(message: Fields, key: string, path: string): string {
  const value = nullToUndefined(message[key])
  return value === undefined ? '' : requireText(value, `${path}.${key}`)
}

function markLast(parts: Part[], cache: CacheMark | undefined): void {
  const last = parts.at(-1)
  if (!cache || !last || last.kind === 'opaque' || last.kind === 'thinking' || last.kind === 'search') return
  parts[parts.length - 1] = { ...last, cache }
}

/** Reads an assistant's calls, and remembers what is needed to read their results. */
class CallReader {
  readonly #opaqueIds = new Set<string>()
  /**
   * Legacy calls (`function_call`) without a result yet, in order: their names, and the ids created for them.
   */
  readonly #legacy: { readonly name: string; readonly id: string }[] = []
  #legacyCount = 0

  /**
   * Reads an element of `tool_calls`. A call of a kind that only chat has becomes an opaque part (see
   * `OpaquePart`), and so does its result.
   */
  readCall(value: unknown, path: string): ToolCallPart | OpaquePart {
    const call = requireObject(value, path)
    const id = requireText(call['id'], `${path}.id`)
    const type = nullToUndefined(call['type'])
    const kind = type === undefined ? 'function' : requireText(type, `${path}.type`)
    if (kind === 'custom')
      return customCall(id, requireObject(call['custom'], `${path}.custom`), `${path}.custom`)
    if (kind !== 'function') {
      this.#opaqueIds.add(id)
      return { kind: 'opaque', protocol: 'chat', value }
    }
    return functionCall(id, requireObject(call['function'], `${path}.function`), `${path}.function`)
  }

  isOpaque(id: string): boolean {
    return this.#opaqueIds.has(id)
  }

  /** Reads a `function_call`, and creates an id for it from its position among these calls. */
  readLegacyCall(value: unknown, path: string): ToolCallPart {
    const part = functionCall(this.#nextId(), requireObject(value, path), path)
    this.#legacy.push({ name: part.name, id: part.id })
    return part
  }

  /**
   * Finds the id of the call that a message with the role `function` answers: the first unanswered call of
   * that name.
   */
  legacyId(name: string): string {
    const at = this.#legacy.findIndex((call) => call.name === name)
    return at < 0 ? this.#nextId() : (this.#legacy.splice(at, 1)[0]?.id ?? this.#nextId())
  }

  #nextId(): string {
    return `call_function_${this.#legacyCount++}`
  }
}

/** Reads a call of a custom tool. Its plain text becomes the only argument of a function. */
function customCall(id: string, call: Fields, path: string): ToolCallPart {
  const input = nullToUndefined(call['input'])
  return {
    kind: 'tool-call',
    id,
    name: requireText(call['name'], `${path}.name`),
    input: customArguments(input === undefined ? '' : requireText(input, `${path}.input`)),
    isCustom: true,
  }
}

/** Reads a call. Its arguments remain the text that the model wrote. */
function functionCall(id: string, call: Fields, path: string): ToolCallPart {
  const input = nullToUndefined(call['arguments'])
  return {
    kind: 'tool-call',
    id,
    name: requireText(call['name'], `${path}.name`),
    input: inputOrEmpty(input === undefined ? '' : requireText(input, `${path}.arguments`)),
  }
}

/** Part of a message's `content`. */
type ContentPart = TextPart | MediaPart | ThinkingPart | OpaquePart

/**
 * Decodes a message's content. A part of a type that only chat has becomes an opaque part. Throws
 * `invalid_request` for a part whose contents do not match its type.
 */
function decodeContent(content: unknown, path: string): ContentPart[] {
  return readContentParts(content, path, (type, part, at): readonly ContentPart[] => {
    if (type === 'thinking') return thinkingPart(part, at)
    return (
      readOpenAiPart(type, part, at, readCacheDirective) ?? [
        { kind: 'opaque', protocol: 'chat', value: part },
      ]
    )
  })
}

/** Reads a `thinking` part. Some providers send it as text, others as a list of parts with text. */
function thinkingPart(part: Fields, path: string): readonly ThinkingPart[] {
  if (typeof part['thinking'] !== 'string') requireArray(part['thinking'], `${path}.thinking`)
  const text = generatedText({ content: [part] }).join('')
  return text === '' ? [] : [{ kind: 'thinking', text }]
}
