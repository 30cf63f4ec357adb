import { hash } from 'node:crypto'
import type { Conversation, Part, ToolCallPart, ToolChoice } from './conversation.ts'
import type { Reply, ReplyEvent, ReplyPart } from './reply.ts'
import type { StreamDecoder } from './codec.ts'
import type { ConversionProtocol } from './protocols.ts'
import type { ServerRules } from './server-rules.ts'

/** Names that a provider accepts. */
interface NameRule {
  /** Matches the names that are accepted as they are. */
  readonly accepted: RegExp
  /** Characters that are not accepted. */
  readonly others: RegExp
  /** Maximum number of characters. */
  readonly most: number
  /** Whether names must begin with a letter or an underscore. */
  readonly beginsWithLetter?: true
}

/** Names of functions at OpenAI and Anthropic, names and ids at Bedrock. */
const PLAIN: NameRule = { accepted: /^[\w-]{1,64}$/, others: /[^\w-]/g, most: 64 }
/** Anthropic: ids match `^[a-zA-Z0-9_-]+$`. */
const MESSAGES_ID = PLAIN
/** Google, `FunctionDeclaration.name`: letters, digits, `_`, `.`, `:` and `-`, at most 64, not first a digit. */
const GEMINI_NAME: NameRule = {
  accepted: /^[A-Za-z_][\w.:-]{0,63}$/,
  others: /[^\w.:-]/g,
  most: 64,
  beginsWithLetter: true,
}
/**
 * OpenAI states no pattern for ids, only the length. `messages[].tool_calls[].id` and `tool_call_id`: "Expected a
 * string with maximum length 40" by older models (https://github.com/microsoft/autogen/issues/6377,
 * https://github.com/agno-agi/agno/issues/5382), 64 by newer ones (https://github.com/decolua/9router/pull/3167).
 */
const CHAT_ID: NameRule = { accepted: /^[^]{1,40}$/, others: /[^\w-]/g, most: 40 }
/** `input[].call_id`: "maximum length 64" (https://github.com/AnswerDotAI/fastllm/issues/45). */
const RESPONSES_ID: NameRule = { accepted: /^[^]{1,64}$/, others: /[^\w-]/g, most: 64 }
/** Google states no rule for ids. */
const ANY_ID: NameRule = { accepted: /^/, others: /[^]/g, most: Infinity }
/** Moonshot: `^[a-zA-Z_][a-zA-Z0-9-_]{2,63}$`. */
const LONG_NAME: NameRule = {
  accepted: /^[A-Za-z_][\w-]{2,63}$/,
  others: /[^\w-]/g,
  most: 64,
  beginsWithLetter: true,
}
/** Mistral: "must be a-z, A-Z, 0-9, with a length of 9". */
const SHORT_ID: NameRule = { accepted: /^[A-Za-z\d]{9}$/, others: /[^]/g, most: 9 }

/** Rules of each protocol's providers for the names of tools and for the ids of calls. */
const RULES: Readonly<Record<ConversionProtocol, { readonly tool: NameRule; readonly id: NameRule }>> = {
  chat: { tool: PLAIN, id: CHAT_ID },
  responses: { tool: PLAIN, id: RESPONSES_ID },
  messages: { tool: PLAIN, id: MESSAGES_ID },
  converse: { tool: PLAIN, id: PLAIN },
  gemini: { tool: GEMINI_NAME, id: ANY_ID },
}

/** Number of hexadecimal digits of a digest behind the readable beginning. */
const DIGITS = 16

/**
 * Gives names that a provider accepts to those that it refuses. Different names never get equal ones. A name
 * gets the same one in a longer conversation that begins with the same names.
 */
class NameMap {
  readonly #rule: NameRule
  readonly #byUse = new Map<string, string>()
  readonly #byWireName = new Map<string, string>()
  /** The last number tried for each name. Lower ones are taken and not tried again: there may be thousands. */
  readonly #lastNumbers = new Map<string, number>()
  /** Whether no name was changed. */
  isIdentity = true

  constructor(rule: NameRule) {
    this.#rule = rule
  }

  /** `use` is the number of the call among those with the same id. */
  wireName(name: string, use = 1): string {
    const key = `${use} ${name}`
    const known = this.#byUse.get(key)
    if (known !== undefined) return known
    let number = this.#lastNumbers.get(name) ?? 0
    let wire: string
    let fitted: ReturnType<typeof fitter> | undefined
    do
      wire =
        ++number === 1 && this.#rule.accepted.test(name)
          ? name
          : (fitted ??= fitter(name, this.#rule))(number)
    while (this.#byWireName.has(wire))
    this.#lastNumbers.set(name, number)
    this.#byUse.set(key, wire)
    this.#byWireName.set(wire, name)
    this.isIdentity &&= wire === name
    return wire
  }

  /** The name for which the provider got this one; any other name is returned unchanged. */
  nameOf(wire: string): string {
    return this.#byWireName.get(wire) ?? wire
  }
}

/** Calls with the same id. */
interface CallsOfId {
  count: number
  /** The latest turn with such calls. */
  turn: number
  /** Its calls without a result, by their numbers among those of the id, and the last call in any case. */
  readonly open: number[]
}

/**
 * Gives each call of a conversation a different id, which providers require; some servers use `call_0` in every
 * answer. A result belongs to the first call with its id that has no result yet, in the latest turn with such
 * calls or in consecutive turns.
 */
class CallIds {
  readonly names: NameMap
  readonly #byId = new Map<string, CallsOfId>()

  constructor(rule: NameRule) {
    this.names = new NameMap(rule)
  }

  ofCall(id: string, turn: number): string {
    const calls = this.#byId.get(id) ?? { count: 0, turn, open: [] }
    this.#byId.set(id, calls)
    if (turn > calls.turn + 1) calls.open.length = 0
    calls.turn = turn
    calls.open.push(++calls.count)
    return this.names.wireName(id, calls.count)
  }

  ofResult(id: string): string {
    const open = this.#byId.get(id)?.open ?? []
    return this.names.wireName(id, open.length > 1 ? open.shift() : open[0])
  }
}

/**
 * Returns a function that makes names with a readable beginning and a digest: a different one for each number, because
 * lower ones may be taken. The given name is read once for all of them, because it may be long.
 */
function fitter(name: string, { others, most, beginsWithLetter }: NameRule): (number: number) => string {
  const plain = name.slice(0, most).replaceAll(others, '_')
  const begun = beginsWithLetter && !/^[A-Za-z_]/.test(plain) ? `_${plain}` : plain
  const beginning = begun.slice(0, most - DIGITS - 1)
  const whole = hash('sha256', name)
  return (number) => {
    const digest = number === 1 ? whole : hash('sha256', `${number}\0${whole}`)
    return most <= DIGITS ? shortDigest(digest, most) : `${beginning}_${digest.slice(0, DIGITS)}`
  }
}

/** Letters and digits in place of a digest, which have more values than its first hexadecimal digits. */
function shortDigest(digest: string, length: number): string {
  return BigInt(`0x${digest}`).toString(36).slice(0, length)
}

type NameRulesOfServer = Pick<ServerRules, 'hasShortIds'> & Partial<Pick<ServerRules, 'hasLongToolNames'>>

/** A conversation whose names of tools and ids of calls a provider accepts, and the way back. */
export interface NamedConversation<Given extends Conversation = Conversation> {
  readonly conversation: Given
  /** The client's name of a tool that the provider calls; absent if no name was changed. */
  readonly toolName?: (wire: string) => string
}

/**
 * Replaces the names of tools and the ids of calls that the providers of a protocol, or the server of a model, refuse.
 */
export function withAcceptedNames(
  conversation: Conversation,
  protocol: ConversionProtocol,
  { hasShortIds, hasLongToolNames = false }: NameRulesOfServer,
): NamedConversation {
  const rules = RULES[protocol]
  const tools = new NameMap(hasLongToolNames ? LONG_NAME : rules.tool)
  const ids = new CallIds(hasShortIds ? SHORT_ID : rules.id)
  for (const { name } of conversation.tools) tools.wireName(name)
  const renamed = (part: Part, turn: number): Part => {
    if (part.kind === 'tool-call')
      return { ...part, id: ids.ofCall(part.id, turn), name: tools.wireName(part.name) }
    return part.kind === 'tool-result' ? { ...part, callId: ids.ofResult(part.callId) } : part
  }
  const turns = conversation.turns.map((turn, at) => ({
    ...turn,
    parts: turn.parts.map((part) => renamed(part, at)),
  }))
  const { toolChoice } = conversation
  if (toolChoice?.kind === 'tool') tools.wireName(toolChoice.name)
  if (tools.isIdentity && ids.names.isIdentity) return { conversation }
  return {
    conversation: {
      ...conversation,
      tools: conversation.tools.map((tool) => ({ ...tool, name: tools.wireName(tool.name) })),
      toolChoice: toolChoice && renamedChoice(toolChoice, tools),
      turns,
    },
    ...(!tools.isIdentity && { toolName: (wire) => tools.nameOf(wire) }),
  }
}

function renamedChoice(choice: ToolChoice, tools: NameMap): ToolChoice {
  return choice.kind === 'tool' ? { ...choice, name: tools.wireName(choice.name) } : choice
}

/** What identifies a call to clients. */
type NamedCall = Pick<ToolCallPart, 'id' | 'name'>

/** Returns the id and the name that the client gets for the next call of a reply. */
export type CallRestorer = (call: NamedCall) => NamedCall

/**
 * Restores the client's names of tools in one reply, and gives each call an id that no other call of the
 * conversation has, because clients find its result by the id. `ids` are those of the calls before the reply.
 */
export function callRestorer(
  ids: Iterable<string>,
  toolName: (wire: string) => string = (wire) => wire,
): CallRestorer {
  const taken = new Set(ids)
  // Ids with lower numbers are taken and not tried again: thousands of calls may have the same id.
  let lastNumbers: Map<string, number> | undefined
  return (call) => {
    let { id } = call
    if (taken.has(id)) {
      let number = lastNumbers?.get(id) ?? 1
      while (taken.has(id)) id = `${call.id}_${++number}`
      ;(lastNumbers ??= new Map()).set(call.id, number)
    }
    taken.add(id)
    return { id, name: toolName(call.name) }
  }
}

/** The ids of the calls in a conversation. */
export function callIdsOf({ turns }: Pick<Conversation, 'turns'>): string[] {
  return turns.flatMap(({ parts }) => parts.flatMap((part) => (part.kind === 'tool-call' ? part.id : [])))
}

export function withRestoredCalls(reply: Reply, restore: CallRestorer): Reply {
  const restored = (part: ReplyPart): ReplyPart =>
    part.kind === 'tool-call' ? { ...part, ...restore(part) } : part
  return {
    ...reply,
    parts: reply.parts.map(restored),
    ...(reply.others && {
      others: reply.others.map((other) => ({ ...other, parts: other.parts.map(restored) })),
    }),
  }
}

/** Makes a decoder restore the calls of a stream. */
export function restoreCalls(decoder: StreamDecoder, restore: CallRestorer): StreamDecoder {
  const isCall = (event: ReplyEvent): boolean =>
    event.kind === 'part-start' && event.part.kind === 'tool-call'
  const restored = (event: ReplyEvent): ReplyEvent =>
    event.kind === 'part-start' && event.part.kind === 'tool-call'
      ? { ...event, part: { ...event.part, ...restore(event.part) } }
      : event
  // Most chunks begin no call, and need no copy of their events.
  const all = (events: ReplyEvent[]): ReplyEvent[] => (events.some(isCall) ? events.map(restored) : events)
  const push = decoder.push.bind(decoder)
  const end = decoder.end.bind(decoder)
  return Object.assign(decoder, { push: (chunk: Buffer) => all(push(chunk)), end: () => all(end()) })
}
