import type { Dropped, UpstreamModel } from '../../codec.ts'
import type { Conversation, Part, SystemText, Tool, ToolChoice, Turn } from '../../conversation.ts'
import { arrayOf, membersOf, type MemberText, objectOf } from '../../json/json-text.ts'
import { dropSharedFields } from '../../shared-fields.ts'
import { drop } from '../dropped-fields.ts'
import { ContentsWriter } from '../encode-contents.ts'
import { encodeText } from '../encode-part.ts'
import { encodeOutputFormat, withSupportedFormat } from '../output-format.ts'
import { encodeThinking } from '../thinking.ts'

/** Maximum number of stop sequences that upstreams accept. */
const MAX_STOPS = 5

/** Seeds are signed 32-bit integers. */
const MAX_SEED = 2 ** 31 - 1

/** Tiers that upstreams know. */
const TIERS: ReadonlySet<string> = new Set(['flex', 'priority'])

/**
 * Encodes a request. The model and whether to stream are not part of it; they are in the path. The order of
 * fields is fixed, so that equal conversations give equal bytes, which hit the upstream's cache. Schemas are
 * sent in fields that accept unchanged JSON Schema. Throws `invalid_request` for anything that cannot be
 * expressed and must not be dropped.
 */
export function encodeRequest(
  requested: Conversation,
  { capabilities }: UpstreamModel,
  dropped: Dropped,
): Buffer {
  const conversation = withSystem(
    withSupportedFormat(withSystemInPlace(requested), capabilities.gemini, dropped),
    capabilities.gemini.takesSystem,
  )
  const contents = new ContentsWriter(capabilities.gemini, dropped).write(conversation.turns)
  const system = conversation.system
    .filter(({ text }) => text !== '')
    .map((part) => encodeText(part, dropped))
  const body = objectOf([
    ['systemInstruction', system.length > 0 ? objectOf([['parts', arrayOf(system)]]) : undefined],
    ['contents', arrayOf(contents)],
    ...encodeTools(conversation, dropped),
    ['generationConfig', configOf(conversation, capabilities, dropped)],
    ['serviceTier', tierOf(conversation, dropped)],
  ])
  return Buffer.from(body)
}

/**
 * Moves the system texts before the user's first text, for models that do not accept a system instruction.
 */
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
  dropped: Dropped,
): string | undefined {
  const { temperature, topP, topK, presencePenalty, frequencyPenalty, stop, outputFormat } = conversation
  if (stop.length > MAX_STOPS) drop(dropped, 'stop')
  const { maxOutputTokens, thinkingConfig } = encodeThinking(conversation, capabilities, dropped)
  const config = objectOf([
    ...membersOf({
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
    ...encodeOutputFormat(outputFormat),
    ...membersOf({ thinkingConfig }),
  ])
  return config === '{}' ? undefined : config
}

/** The seed, if it fits into 32 bits. */
function seedOf({ seed }: Conversation, dropped: Dropped): number | undefined {
  if (seed === undefined || (seed <= MAX_SEED && seed >= -MAX_SEED - 1)) return seed
  drop(dropped, 'seed')
  return undefined
}

/** Most models refuse functions together with web search; the functions are kept. */
function encodeTools(
  { tools, toolChoice, parallelTools, webSearch }: Conversation,
  dropped: Dropped,
): MemberText[] {
  if (tools.some(({ strict }) => strict)) drop(dropped, 'tools.strict')
  if (tools.some(({ cache }) => cache)) drop(dropped, 'cache_control')
  if (parallelTools === false) drop(dropped, 'parallel_tool_calls')
  if (tools.length === 0) {
    if (toolChoice?.kind === 'any' || toolChoice?.kind === 'tool') drop(dropped, 'tool_choice')
    return webSearch ? [['tools', '[{"googleSearch":{}}]']] : []
  }
  if (webSearch) drop(dropped, 'tools.web_search')
  const declarations = arrayOf(tools.map(encodeTool))
  return [
    ['tools', arrayOf([objectOf([['functionDeclarations', declarations]])])],
    ...membersOf({ toolConfig: toolChoice && { functionCallingConfig: callingConfigOf(toolChoice) } }),
  ]
}

function encodeTool({ name, description, schema }: Tool): string {
  return objectOf([...membersOf({ name, description }), ['parametersJsonSchema', schema]])
}

function callingConfigOf(choice: ToolChoice): object {
  if (choice.kind === 'tool') return { mode: 'ANY', allowedFunctionNames: [choice.name] }
  return { mode: choice.kind.toUpperCase() }
}

/** The tier as JSON text. Other fields that some dialects share are reported as dropped. */
function tierOf(conversation: Conversation, dropped: Dropped): string | undefined {
  const tier = conversation.shared?.get('service_tier')
  const isTaken = tier !== undefined && TIERS.has(JSON.parse(tier) as string)
  const shared = new Map(conversation.shared)
  if (isTaken) shared.delete('service_tier')
  dropSharedFields({ ...conversation, shared }, dropped)
  return isTaken ? tier : undefined
}

/** Converts system texts after the first turn to user texts at the same positions. */
function withSystemInPlace(conversation: Conversation): Conversation {
  const later = conversation.system.filter(({ at }) => at !== undefined)
  if (later.length === 0) return conversation
  const system = conversation.system.filter(({ at }) => at === undefined)
  return { ...conversation, system, turns: withTexts(conversation.turns, later) }
}

function withTexts(turns: readonly Turn[], later: readonly SystemText[]): Turn[] {
  const said: Turn[] = []
  for (let number = 0; number <= turns.length; number++) {
    const turn = turns[number]
    const texts = later.filter(({ at }) => at?.turn === number)
    if (turn?.role === 'user') said.push({ ...turn, parts: merged(turn.parts, texts) })
    else {
      if (texts.length > 0) said.push({ role: 'user', parts: texts })
      if (turn) said.push(turn)
    }
  }
  return said
}

function merged(parts: readonly Part[], texts: readonly SystemText[]): readonly Part[] {
  if (texts.length === 0) return parts
  return Array.from({ length: parts.length + 1 }, (_, number) => [
    ...texts.filter(({ at }) => at?.part === number),
    ...parts.slice(number, number + 1),
  ]).flat()
}
