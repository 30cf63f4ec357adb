import type { ReplyIdentity } from '../../codec.ts'
import type { ReplyContext, Tool, ClientTool } from '../../conversation.ts'
import { logprobsIn } from '../../logprobs.ts'
import { inputObject, inputOrEmpty, isCutOff } from '../../tool-input.ts'
import {
  type Citation,
  codePointsIn,
  partsWithWords,
  placedCitation,
  type Reply,
  type ReplyPart,
  type ReplyText,
  type StartedPart,
  urlCitation,
} from '../../reply.ts'
import { ResponseObject } from '../response-object.ts'
import { incompleteReason } from '../stop-reasons.ts'
import { parseRecord } from '../../json/record.ts'
import { jsonMembersOf, renderObject } from '../../json/json-edit.ts'
import {
  isSealable,
  sealOpaquePart,
  sealSignature,
  UNSIGNED_THOUGHT_ENVELOPE,
} from '../../signature-envelope.ts'
import { searchItem } from '../search-item.ts'
import { decodeCustomInput } from '../../openai-tools.ts'

/**
 * Encodes a complete response. Each part becomes an item; consecutive texts become one. If the response is
 * incomplete, its last item is marked as incomplete. A tool call whose arguments were cut off is always marked as
 * incomplete.
 */
export function encodeReply(reply: Reply, identity: ReplyIdentity, replyContext?: ReplyContext): Buffer {
  const response = new ResponseObject(identity, replyContext)
  response.model = reply.model
  const reason = incompleteReason(reply.stop)
  const parts = withJoinedTexts(partsWithWords(reply).filter(saysSomething))
  const forms = new ClientToolsByFunction(replyContext?.tools)
  const output = parts.map((part, index) => {
    const form = part.kind === 'tool-call' ? forms.of(part.name) : undefined
    const type = itemType(part, form, part.kind === 'tool-call' ? part.input : undefined)
    const isLast = index === parts.length - 1
    const isIncomplete =
      (isLast && reason !== undefined) || (part.kind === 'tool-call' && isCutOff(part.input))
    const status = isIncomplete ? 'incomplete' : 'completed'
    return writeItem(part, { id: itemId(type, response.itemKey, index), type, status, form })
  })
  const status = reason === undefined ? 'completed' : 'incomplete'
  return Buffer.from(response.write({ status, incompleteReason: reason, output, usage: reply.usage }))
}

/**
 * Joins consecutive texts, such as those that Claude writes around a citation: clients show each message
 * separately, and take the last one as the answer.
 */
function withJoinedTexts(parts: readonly ReplyPart[]): ReplyPart[] {
  const runs: [ReplyPart, ...ReplyText[]][] = []
  for (const part of parts) {
    const run = runs.at(-1)
    const first = run?.[0]
    if (run && part.kind === 'text' && first?.kind === 'text' && first.refusal === part.refusal)
      run.push(part)
    else runs.push([part])
  }
  return runs.map(([first, ...others]) => (first.kind === 'text' ? joinedText(first, others) : first))
}

function joinedText(first: ReplyText, others: readonly ReplyText[]): ReplyText {
  if (others.length === 0) return first
  const texts = [first, ...others]
  let base = 0
  const citations = texts.flatMap((part) => {
    const length = codePointsIn(part.text)
    const placed = (part.citations ?? []).map((citation) => placedCitation(citation, length, base))
    base += length
    return placed
  })
  return { ...first, text: texts.map(({ text }) => text).join(''), citations, logprobs: logprobsIn(texts) }
}

/**
 * Whether a part becomes an item. Empty texts do not, nor do opaque parts, whose content only the responses
 * protocol can express.
 */
export function saysSomething(part: ReplyPart): boolean {
  switch (part.kind) {
    case 'text':
      return part.text !== ''
    case 'thinking':
      return part.text !== '' || part.proof !== undefined
    case 'opaque':
      return part.protocol !== 'responses' && isSealable(part)
    case 'tool-call':
    case 'search':
      return true
  }
}

export type ItemStatus = 'in_progress' | 'completed' | 'incomplete'

/** Types of items that this gateway writes, each with the prefix of its ids. */
const ID_PREFIXES = {
  message: 'msg',
  reasoning: 'rs',
  web_search_call: 'ws',
  function_call: 'fc',
  custom_tool_call: 'ctc',
  local_shell_call: 'lsh',
  shell_call: 'sh',
  apply_patch_call: 'apc',
  tool_search_call: 'tsc',
} as const

/** The type of an item that this gateway writes. */
export type ItemType = keyof typeof ID_PREFIXES

/** How the client declared its tools, by the names of the functions that replace them. */
export class ClientToolsByFunction {
  readonly #forms: ReadonlyMap<string, ClientTool>

  constructor(tools: readonly Tool[] = []) {
    this.#forms = new Map(tools.flatMap(({ name, form }) => (form ? [[name, form] as const] : [])))
  }

  /** How the client declared the tool that is called by this function name. */
  of(name: string): ClientTool {
    return this.#forms.get(name) ?? { type: 'function', name }
  }
}

/**
 * Returns the type of the item for a part. `input` is the complete input of a tool call, if known. If the
 * input was cut off or is malformed, so that it is invalid for the tool's type, the call is written as a
 * function call.
 */
export function itemType(
  part: Pick<StartedPart, 'kind'>,
  form: ClientTool | undefined,
  input?: string,
): ItemType {
  if (part.kind === 'text') return 'message'
  if (part.kind === 'search') return 'web_search_call'
  if (part.kind !== 'tool-call' || !form) return 'reasoning'
  if (form.type === 'custom') return 'custom_tool_call'
  return input !== undefined && !fits(form.type, input) ? 'function_call' : `${form.type}_call`
}

/** Whether a tool of this type can be called with this input. */
function fits(type: ClientTool['type'], input: string): boolean {
  const object = inputObject(input)
  if (object === undefined) return false
  if (type === 'function' || type === 'tool_search') return true
  const fields = parseRecord(object) ?? {}
  if (type === 'apply_patch') return typeof fields['type'] === 'string' && typeof fields['path'] === 'string'
  const commands = fields[type === 'shell' ? 'commands' : 'command']
  return Array.isArray(commands) && commands.every((part) => typeof part === 'string')
}

/** Id of an item. If the item is a tool call, the id of the call is a different one. */
export function itemId(type: ItemType, response: string, index: number): string {
  return `${ID_PREFIXES[type]}_${response}${String(index).padStart(3, '0')}`
}

/** Members of an item that do not depend on its content. `form` is the declaration of a called tool. */
export interface CommonItemMembers {
  readonly id: string
  readonly type: ItemType
  readonly status: ItemStatus
  readonly form: ClientTool | undefined
}

/** Encodes a part of a reply as the JSON text of its item. */
export function writeItem(part: ReplyPart, frame: CommonItemMembers): string {
  const { id, status } = frame
  switch (part.kind) {
    case 'text':
      return JSON.stringify({
        id,
        type: 'message',
        status,
        role: 'assistant',
        content: status === 'in_progress' ? [] : [part.refusal ? refusalPart(part) : textPart(part)],
      })
    case 'thinking':
      return JSON.stringify({
        id,
        type: 'reasoning',
        summary: part.text === '' ? [] : [summaryPart(part)],
        ...encryptedContent(part, status),
      })
    case 'search':
      // The query of a search is written only when the search has ended.
      return JSON.stringify(
        status === 'in_progress' ? { id, type: 'web_search_call', status } : { id, ...searchItem(part) },
      )
    case 'opaque':
      return JSON.stringify({
        id,
        type: 'reasoning',
        summary: [],
        ...(status !== 'in_progress' && { encrypted_content: sealOpaquePart(part) }),
      })
    case 'tool-call':
      return writeCall(part, frame)
  }
}

/**
 * The encrypted content of a thought, as an object to spread into the item: it is absent where there is none,
 * because the schema does not allow null. If no responses are stored, clients discard thoughts without it.
 */
function encryptedContent(
  { text, proof }: Extract<ReplyPart, { kind: 'thinking' }>,
  status: ItemStatus,
): { encrypted_content?: string } {
  if (proof) return { encrypted_content: sealSignature(proof, 'responses') }
  return text === '' || status === 'in_progress' ? {} : { encrypted_content: UNSIGNED_THOUGHT_ENVELOPE }
}

/** Encodes a text of a message. */
export function textPart({ text, citations, logprobs = [] }: Omit<ReplyText, 'kind'>): object {
  return { type: 'output_text', annotations: annotationsOf(text, citations), logprobs, text }
}

/** Encodes a refusal in a message. */
export function refusalPart({ text }: Pick<ReplyText, 'text'>): object {
  return { type: 'refusal', refusal: text }
}

/** Encodes the citations of a text. */
export function annotationsOf(text: string, citations: readonly Citation[] = []): object[] {
  if (citations.length === 0) return []
  const length = codePointsIn(text)
  return citations.map((citation) => ({ type: 'url_citation', ...urlCitation(citation, length) }))
}

/** Encodes a text of a reasoning item. */
export function summaryPart({ text }: Pick<ReplyText, 'text'>): object {
  return { type: 'summary_text', text }
}

/** Encodes a tool call as an item of the type for which the client declared the tool. */
function writeCall(
  { id: callId, name, input }: Extract<ReplyPart, { kind: 'tool-call' }>,
  { id, type, status, form = { type: 'function', name } }: CommonItemMembers,
): string {
  const { namespace } = form
  const named = { name: form.name, ...(namespace !== undefined && { namespace }) }
  const common = { id, type, status, call_id: callId }
  switch (type) {
    case 'custom_tool_call':
      return JSON.stringify({ ...common, ...named, input: decodeCustomInput(input) })
    case 'local_shell_call':
      return renderObject([...jsonMembersOf(common), ['action', withLocalShellMembers(inputOrEmpty(input))]])
    case 'shell_call':
      return renderObject([
        ...jsonMembersOf({ ...common, environment: null }),
        ['action', withShellMembers(inputOrEmpty(input))],
      ])
    case 'apply_patch_call':
      return renderObject([...jsonMembersOf(common), ['operation', inputOrEmpty(input)]])
    case 'tool_search_call':
      return renderObject([
        ...jsonMembersOf({ ...common, execution: 'client' }),
        ['arguments', inputOrEmpty(input)],
      ])
    case 'function_call':
    case 'message':
    case 'reasoning':
    case 'web_search_call': {
      const args = status === 'in_progress' ? '' : inputOrEmpty(input)
      return JSON.stringify({ ...common, ...named, arguments: args })
    }
  }
}

/** Members that the action of a shell must have. */
const SHELL_ACTION = { commands: '[]', timeout_ms: 'null', max_output_length: 'null' }

/** Adds the missing members to the end of a shell's action. The text of the others stays. */
function withShellMembers(input: string): string {
  const action = parseRecord(input) ?? {}
  const missing = Object.entries(SHELL_ACTION).filter(([name]) => !Object.hasOwn(action, name))
  const members = [input.trim().slice(1, -1).trim(), ...missing.map(([name, value]) => `"${name}":${value}`)]
  return `{${members.filter((text) => text !== '').join(',')}}`
}

/** Adds the required members that the action of a local shell lacks. */
function withLocalShellMembers(input: string): string {
  const action = JSON.parse(input) as Readonly<Record<string, unknown>>
  return JSON.stringify({ type: 'exec', command: [], env: {}, ...action })
}
