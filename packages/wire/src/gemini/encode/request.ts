import type { DroppedFields, UpstreamModel } from '../../codec.ts'
import type {
  Conversation,
  MediaPart,
  Part,
  TextPart,
  Thinking,
  ThinkingPart,
  Tool,
  ToolCallPart,
  ToolChoice,
  ToolResultPart,
  Turn,
} from '../../conversation.ts'
import { dropSearchRules } from '../../web-search.ts'
import { jsonArrayOf, jsonMembersOf, type MemberText, renderObject } from '../../json/json-edit.ts'
import { dropSharedFields } from '../../shared-fields.ts'
import { withSystemTextsInTurns } from '../../system-texts-in-turns.ts'
import { reportDropped } from '../dropped-fields.ts'
import { encodeOutputFormat, withSupportedFormat } from '../output-format.ts'
import { WireError } from '../../wire-error.ts'
import { parseRecord } from '../../json/record.ts'
import {
  type Capabilities,
  type GeminiCapabilities,
  geminiVersion,
  isSince,
} from '../../model-capabilities.ts'
import { historyInput } from '../../tool-input.ts'
import { UNSIGNED_CALL_SIGNATURE } from '../signature.ts'
import {
  thinkingBudgetOf,
  DYNAMIC_BUDGET,
  isThinkingOff,
  nearestEffort,
  disablingEffort,
  requestedEffort,
} from '../../thinking.ts'

/** Maximum number of stop sequences that upstreams accept. */
const MAX_STOPS = 5

/** Highest seed that upstreams accept, a signed 32-bit integer. */
const MAX_SEED = 2 ** 31 - 1

/** Service tiers that upstreams know. */
const TIERS: ReadonlySet<string> = new Set(['flex', 'priority'])

/**
 * Encodes a request. It contains neither the model nor whether to stream, which are in the path. Fields are
 * written in a fixed order, so that equal conversations have equal bytes and hit the upstream's cache.
 * Schemas are written into fields that accept JSON Schema. Throws `invalid_request` if this protocol cannot
 * express something that must not be dropped.
 */
export function encodeRequest(
  requested: Conversation,
  { capabilities }: UpstreamModel,
  dropped: DroppedFields,
): Buffer {
  const conversation = withSystem(
    withSupportedFormat(withSystemTextsInTurns(requested), capabilities.gemini, dropped),
    capabilities.gemini.takesSystem,
  )
  const contents = new ContentsWriter(capabilities.gemini, dropped).write(conversation.turns)
  const system = conversation.system
    .filter(({ text }) => text !== '')
    .map((part) => encodeText(part, dropped))
  const body = renderObject([
    ['systemInstruction', system.length > 0 ? renderObject([['parts', jsonArrayOf(system)]]) : undefined],
    ['contents', jsonArrayOf(contents)],
    ...encodeTools(conversation, dropped),
    ['generationConfig', configOf(conversation, capabilities, dropped)],
    ['serviceTier', tierOf(conversation, dropped)],
  ])
  return Buffer.from(body)
}

/** Moves the system texts before the user's first text, if the model does not accept a system instruction. */
function withSystem(conversation: Conversation, takesSystem: boolean): Conversation {
  const { system, turns } = conversation
  const [first, ...rest] = turns
  if (takesSystem || system.length === 0) return conversation
  if (first?.role === 'user')
    return {
      ...conversation,
      system: [],
      turns: [{ role: 'user', parts: [...system, ...first.parts] }, ...rest],
    }
  return { ...conversation, system: [], turns: [{ role: 'user', parts: system }, ...turns] }
}

function configOf(
  conversation: Conversation,
  capabilities: UpstreamModel['capabilities'],
  dropped: DroppedFields,
): string | undefined {
  const { temperature, topP, topK, presencePenalty, frequencyPenalty, stop, outputFormat } = conversation
  if (stop.length > MAX_STOPS) reportDropped(dropped, 'stop')
  const { maxOutputTokens, thinkingConfig } = encodeThinking(conversation, capabilities, dropped)
  const config = renderObject([
    ...jsonMembersOf({
      maxOutputTokens,
      temperature,
      topP,
      topK,
      seed: seedOf(conversation, dropped),
      presencePenalty,
      frequencyPenalty,
      stopSequences: stop.length > 0 ? stop.slice(0, MAX_STOPS) : undefined,
      candidateCount: conversation.choices?.count,
      responseLogprobs: conversation.logprobs && true,
      logprobs: conversation.logprobs?.top,
    }),
    ...encodeOutputFormat(outputFormat, dropped),
    ...jsonMembersOf({ thinkingConfig }),
  ])
  return config === '{}' ? undefined : config
}

/** The seed, if it fits into 32 bits; otherwise it is dropped and reported. */
function seedOf({ seed }: Conversation, dropped: DroppedFields): number | undefined {
  if (seed === undefined || (seed <= MAX_SEED && seed >= -MAX_SEED - 1)) return seed
  reportDropped(dropped, 'seed')
  return undefined
}

/**
 * Encodes the tools. If functions and web search are requested, only the functions are sent, because most
 * models refuse both together.
 */
function encodeTools(
  { tools, toolChoice, parallelTools, webSearch }: Conversation,
  dropped: DroppedFields,
): MemberText[] {
  if (tools.some(({ strict }) => strict)) reportDropped(dropped, 'tools.strict')
  if (tools.some(({ cache }) => cache)) reportDropped(dropped, 'cache_control')
  if (parallelTools === false) reportDropped(dropped, 'parallel_tool_calls')
  dropSearchRules(webSearch, dropped)
  if (tools.length === 0) {
    if (toolChoice?.kind === 'any' || toolChoice?.kind === 'tool') reportDropped(dropped, 'tool_choice')
    return webSearch ? [['tools', '[{"googleSearch":{}}]']] : []
  }
  if (webSearch) reportDropped(dropped, 'tools.web_search')
  const declarations = jsonArrayOf(tools.map(encodeTool))
  return [
    ['tools', jsonArrayOf([renderObject([['functionDeclarations', declarations]])])],
    ...jsonMembersOf({ toolConfig: toolChoice && { functionCallingConfig: callingConfigOf(toolChoice) } }),
  ]
}

function encodeTool({ name, description, schema }: Tool): string {
  return renderObject([...jsonMembersOf({ name, description }), ['parametersJsonSchema', schema]])
}

function callingConfigOf(choice: ToolChoice): object {
  if (choice.kind === 'tool') return { mode: 'ANY', allowedFunctionNames: [choice.name] }
  return { mode: choice.kind.toUpperCase() }
}

/** The service tier as JSON text. Other fields in `shared` are reported as dropped. */
function tierOf(conversation: Conversation, dropped: DroppedFields): string | undefined {
  const tier = conversation.shared?.get('service_tier')
  const isTaken = tier !== undefined && TIERS.has(JSON.parse(tier) as string)
  const shared = new Map(conversation.shared)
  if (isTaken) shared.delete('service_tier')
  dropSharedFields({ ...conversation, shared }, dropped)
  return isTaken ? tier : undefined
}

/** Part for an empty turn, because upstreams require at least one part. */
const PLACEHOLDER = '{"text":"..."}'

/** A content to which parts are still added. Consecutive turns of one role become one content. */
interface OpenContent {
  readonly role: 'user' | 'model'
  readonly parts: string[]
}

/**
 * Encodes turns as `contents`, which begin with the user. Function responses are first in their turn, and
 * state the names of their calls. If the model requires signatures, the first function call of each step of
 * the model gets its signature or the documented placeholder. Earlier turns get the placeholder too, so that
 * a longer conversation begins with the same bytes.
 */
class ContentsWriter {
  readonly #capabilities: GeminiCapabilities
  readonly #dropped: DroppedFields
  readonly #names = new Map<string, string>()

  constructor(capabilities: GeminiCapabilities, dropped: DroppedFields) {
    this.#capabilities = capabilities
    this.#dropped = dropped
  }

  /** Writes the contents, each as JSON text. */
  write(turns: readonly Turn[]): string[] {
    const contents: OpenContent[] = []
    for (const turn of turns) {
      const role = turn.role === 'user' ? 'user' : 'model'
      const parts = turn.role === 'user' ? this.#writeUser(turn.parts) : this.#writeModel(turn.parts)
      const last = contents.at(-1)
      if (last?.role === role) last.parts.push(...parts)
      else if (role === 'user' || parts.length > 0) contents.push({ role, parts })
    }
    if (contents[0]?.role !== 'user') contents.unshift({ role: 'user', parts: [] })
    return contents.map(({ role, parts }) => {
      const written = parts.length > 0 ? parts.join(',') : PLACEHOLDER
      return `{"role":"${role}","parts":[${written}]}`
    })
  }

  #writeUser(parts: readonly Part[]): string[] {
    const responses: string[] = []
    const others: string[] = []
    for (const part of parts) {
      if (part.kind === 'tool-result') {
        const { response, media } = this.#writeResult(part)
        responses.push(response)
        others.push(...media)
      } else others.push(...this.#writeOther(part))
    }
    return [...responses, ...others]
  }

  #writeResult(part: ToolResultPart): ReturnType<typeof encodeResult> {
    return encodeResult(part, this.#names.get(part.callId), {
      holdsMedia: this.#capabilities.mixesTools,
      dropped: this.#dropped,
    })
  }

  #writeModel(parts: readonly Part[]): string[] {
    const written: string[] = []
    /** Signature that will be written with the next tool call of the turn. */
    let signature: string | undefined
    let isFirstCall = true
    for (const part of parts) {
      if (part.kind === 'tool-call') {
        const standIn =
          isFirstCall && this.#capabilities.requiresSignatures ? UNSIGNED_CALL_SIGNATURE : undefined
        written.push(this.#writeCall(part, signature ?? standIn))
        signature = undefined
        isFirstCall = false
      } else if (part.kind === 'thinking' && part.proof?.protocol === 'gemini' && part.proof.signs === 'call')
        signature = part.proof.value
      else written.push(...this.#writeOther(part))
    }
    return written
  }

  #writeCall({ id, name, input, cache }: ToolCallPart, signature: string | undefined): string {
    if (cache) reportDropped(this.#dropped, 'cache_control')
    this.#names.set(id, name)
    const call = renderObject([
      ['id', JSON.stringify(id)],
      ['name', JSON.stringify(name)],
      ['args', historyInput(input)],
    ])
    return renderObject([
      ['functionCall', call],
      ['thoughtSignature', signature && JSON.stringify(signature)],
    ])
  }

  #writeOther(part: Exclude<Part, ToolCallPart | ToolResultPart> | Part): string[] {
    switch (part.kind) {
      case 'text':
        if (part.cache) reportDropped(this.#dropped, 'cache_control')
        return part.text === '' ? [] : [encodeText(part, this.#dropped)]
      case 'media':
        return [encodeMedia(part, this.#dropped)]
      case 'thinking':
        return this.#writeThought(part)
      case 'opaque':
        if (part.protocol === 'gemini') return [JSON.stringify(part.value)]
        reportDropped(this.#dropped, 'content')
        return []
      case 'search':
      case 'tool-call':
      case 'tool-result':
        reportDropped(this.#dropped, 'content')
        return []
    }
  }

  /**
   * Writes a thought that a Gemini model has signed. Any other thought is left out, because as a text it
   * would confuse the model.
   */
  #writeThought({ text, proof }: ThinkingPart): string[] {
    if (proof?.protocol !== 'gemini') {
      reportDropped(this.#dropped, 'reasoning_content')
      return []
    }
    if (proof.signs === 'text') return [JSON.stringify({ text: '', thoughtSignature: proof.value })]
    return [JSON.stringify({ text, thought: true, thoughtSignature: proof.value })]
  }
}

/** A tool result in this protocol: the function response, and the media that must be separate parts. */
interface WrittenResult {
  readonly response: string
  readonly media: readonly string[]
}

/**
 * Encodes a tool result as a function response. A text that is a JSON object becomes `response` itself. Any
 * other text becomes its member `output`, or `error` if the tool failed. With `holdsMedia`, media are inside
 * the function response. Throws `invalid_request` if the name of the function is unknown, because this
 * protocol requires it.
 */
function encodeResult(
  { callId, parts, isError, cache }: ToolResultPart,
  name: string | undefined,
  { holdsMedia, dropped }: { readonly holdsMedia: boolean; readonly dropped: DroppedFields },
): WrittenResult {
  if (name === undefined)
    throw new WireError('invalid_request', 'A tool result has no call with its id in an earlier turn.')
  if (cache || parts.some((part) => part.kind === 'text' && part.cache))
    reportDropped(dropped, 'cache_control')
  if (parts.some(({ kind }) => kind === 'opaque')) reportDropped(dropped, 'content')
  const text = parts
    .filter((part): part is TextPart => part.kind === 'text')
    .map((part) => part.text)
    .join('\n')
  const media = parts
    .filter((part): part is MediaPart => part.kind === 'media')
    .map((part) => encodeMedia(part, dropped))
  const response = renderObject([
    ...jsonMembersOf({ id: callId, name }),
    ['response', responseOf(text, isError)],
    ['parts', holdsMedia && media.length > 0 ? `[${media.join(',')}]` : undefined],
  ])
  return { response: `{"functionResponse":${response}}`, media: holdsMedia ? [] : media }
}

function responseOf(text: string, isError: boolean): string {
  if (isError) return JSON.stringify({ error: text })
  const trimmed = text.trim()
  // The JSON object is copied as text, so that digits and the order of keys are kept.
  return trimmed.startsWith('{') && parseRecord(trimmed) ? trimmed : JSON.stringify({ output: text })
}

function encodeText({ text, cache }: TextPart, dropped: DroppedFields): string {
  if (cache) reportDropped(dropped, 'cache_control')
  return JSON.stringify({ text })
}

/** Encodes media as a part. Media given as a URL must have been downloaded before. */
function encodeMedia({ source, name, detail, cache }: MediaPart, dropped: DroppedFields): string {
  if (source.kind === 'url')
    throw new WireError('invalid_request', 'A file that is given by its URL could not be passed on.')
  if (cache) reportDropped(dropped, 'cache_control')
  if (detail !== undefined) reportDropped(dropped, 'image_url.detail')
  if (name !== undefined) reportDropped(dropped, 'title')
  return JSON.stringify({ inlineData: { mimeType: source.mediaType, data: source.data } })
}

/** Fields of `generationConfig` that depend on each other. Undefined fields are left out. */
interface ThinkingFields {
  readonly maxOutputTokens: number | undefined
  readonly thinkingConfig:
    | {
        readonly includeThoughts?: true
        readonly thinkingBudget?: number
        readonly thinkingLevel?: string
      }
    | undefined
}

/**
 * Encodes thinking and the maximum of output tokens, which includes thoughts in this protocol. A model
 * accepts either a level or a budget of thinking tokens. A budget must be below the maximum of output tokens,
 * which is increased if needed. A model that cannot switch thinking off gets the lowest level or budget. An
 * unknown model gets the lowest level only if the client named it.
 */
function encodeThinking(
  { thinking, maxTokens }: Pick<Conversation, 'thinking' | 'maxTokens'>,
  capabilities: Capabilities,
  dropped: DroppedFields,
): ThinkingFields {
  const plain = { maxOutputTokens: maxTokens, thinkingConfig: undefined }
  if (!thinking) return plain
  const isOff = isThinkingOff(thinking)
  if (capabilities.thinking === 'none') {
    if (!isOff) reportDropped(dropped, 'thinking')
    return plain
  }
  const { levels } = capabilities.gemini
  if (levels) {
    const requested = requestedEffort(thinking)
    const level = isOff ? levels[0] : requested && nearestEffort(requested, levels)
    return {
      maxOutputTokens: maxTokens,
      thinkingConfig: {
        ...(!isOff && { includeThoughts: true }),
        ...(level && { thinkingLevel: level.toUpperCase() }),
      },
    }
  }
  if (!capabilities.isKnown && disablingEffort(thinking) === 'minimal')
    return { ...plain, thinkingConfig: { thinkingLevel: 'MINIMAL' } }
  const budget = budgetFor(thinking, capabilities)
  return {
    maxOutputTokens: maxTokens === undefined || maxTokens > budget ? maxTokens : budget + maxTokens,
    thinkingConfig: { ...(!isOff && { includeThoughts: true }), thinkingBudget: budget },
  }
}

/** Returns the maximum number of output tokens that is sent for a conversation. */
export function maxTokensOf(conversation: Conversation, capabilities: Capabilities): number | undefined {
  return encodeThinking(conversation, capabilities, new Set()).maxOutputTokens
}

/**
 * The highest maximum of output tokens with which Gemini answers in one response. From 4 on, it refuses a higher one
 * unless the request asks for a stream. https://ai.google.dev/gemini-api/docs/generate-content/long-decode
 */
const MAX_WHOLE_TOKENS = 32_768

/** Whether a whole answer must be requested as a stream, because it may be too long for one response. */
export function mustStream(conversation: Conversation, { name, capabilities }: UpstreamModel): boolean {
  const version = geminiVersion(name) ?? geminiVersion(conversation.model)
  if (!version || !isSince(version, 4)) return false
  return (maxTokensOf(conversation, capabilities) ?? 0) > MAX_WHOLE_TOKENS
}

function budgetFor(thinking: Thinking, { gemini }: Capabilities): number {
  const [min, max] = gemini.budgets
  if (isThinkingOff(thinking)) return gemini.canStopThinking ? 0 : min
  if (thinking.kind === 'adaptive' && thinking.effort === undefined) return DYNAMIC_BUDGET
  const requested =
    thinking.kind === 'budget' ? thinking.tokens : thinkingBudgetOf(requestedEffort(thinking) ?? 'medium')
  return Math.min(Math.max(requested, min), max)
}
