import { WireError } from '../../wire-error.ts'
import { refuseSeveralChoices } from '../../reply.ts'
import type { DroppedFields, UpstreamModel } from '../../codec.ts'
import type { Conversation, Part, Tool, ToolChoice, Turn } from '../../conversation.ts'
import type { EncodableConversation, EncodablePart, EncodableTurn } from '../../alternating-turns.ts'
import type { ConverseCapabilities } from '../../model-capabilities.ts'
import { dropSearchRules } from '../../web-search.ts'
import { jsonArrayOf, jsonMembersOf, renderObject } from '../../json/json-edit.ts'
import { parseRecord } from '../../json/record.ts'
import { dropLogprobs } from '../../logprobs.ts'
import { dropSeedAndPenalties } from '../../sampling.ts'
import { toolForClaude } from '../../schemas/accepted-schemas.ts'
import { EnforcedSchemas } from '../../schemas/closed-schema.ts'
import { reportDropped } from './dropped-fields.ts'
import { BlockWriter, TEXT_BLOCK_PLACEHOLDER } from './blocks.ts'
import { encodeInference } from './inference.ts'
import { withEncodableTurns } from './turns.ts'
import { encodeOutputFormat, withSupportedFormat } from './output-format.ts'

/** Service tiers that upstreams know. */
const TIERS: ReadonlySet<unknown> = new Set(['default', 'flex', 'priority'])

/**
 * Encodes a request. It contains neither the model nor whether to stream, which are in the path. Fields are
 * written in a fixed order, so that equal conversations have equal bytes and hit the upstream's cache. Throws
 * `invalid_request` if this protocol cannot express something that must not be dropped.
 */
export function encodeRequest(
  requested: Conversation,
  { capabilities }: UpstreamModel,
  dropped: DroppedFields,
): Buffer {
  dropSeedAndPenalties(requested, dropped)
  dropLogprobs(requested, dropped)
  refuseSeveralChoices(requested)
  const { converse } = capabilities
  const enforced = new EnforcedSchemas()
  const encodable = withEncodableTurns(requested, capabilities, dropped)
  const formatted = withSupportedFormat(encodable, capabilities, enforced, dropped)
  const conversation = withSystem({ ...formatted, turns: encodable.turns }, converse.takesSystem)
  const writer = new BlockWriter(converse, dropped)
  const system = conversation.system.flatMap((part) => writer.writeText(part))
  const { outputFormat } = formatted
  const body = renderObject([
    ['system', system.length > 0 ? jsonArrayOf(system) : undefined],
    ['messages', jsonArrayOf(encodeTurns(conversation.turns, converse, dropped))],
    ['toolConfig', encodeTools(conversation, converse, enforced, dropped)],
    ...encodeInference(conversation, capabilities, dropped),
    ['outputConfig', outputFormat && encodeOutputFormat(outputFormat)],
    ['serviceTier', tierOf(conversation, dropped)],
  ])
  return Buffer.from(body)
}

/** Moves the system texts before the user's first text, if the model does not accept a system instruction. */
function withSystem(conversation: EncodableConversation, takesSystem: boolean): EncodableConversation {
  const { system, turns } = conversation
  if (takesSystem || system.length === 0) return conversation
  const [first, ...rest] = turns
  const parts = [...system, ...(first?.parts ?? [])]
  return { ...conversation, system: [], turns: [{ role: 'user', parts }, ...rest] }
}

/** The service tier as JSON text. Other fields in `shared` are reported as dropped. */
function tierOf(
  { shared, endUser, isStandardTier }: Conversation,
  dropped: DroppedFields,
): string | undefined {
  if (endUser?.field === 'metadata') dropped.add('metadata')
  let tier = isStandardTier ? '{"type":"default"}' : undefined
  for (const [name, value] of shared ?? []) {
    if (name === 'service_tier' && TIERS.has(JSON.parse(value))) tier = `{"type":${value}}`
    else dropped.add(name)
  }
  return tier
}

/** A part with the blocks that were written for it; at least one. */
interface Written {
  readonly kind: Part['kind']
  readonly blocks: readonly string[]
}

interface WrittenTurn {
  readonly role: Turn['role']
  readonly parts: readonly Written[]
}

/**
 * Encodes turns as messages. A turn without text, and a document without text beside it, get a placeholder,
 * because upstreams refuse both.
 */
function encodeTurns(
  turns: readonly EncodableTurn[],
  capabilities: ConverseCapabilities,
  dropped: DroppedFields,
): string[] {
  const writer = new BlockWriter(capabilities, dropped)
  const writeParts = (parts: readonly EncodablePart[]): readonly Written[] =>
    parts
      .map((part) => ({ kind: part.kind, blocks: writer.write(part) }))
      .filter(({ blocks }) => blocks.length > 0)
  return turns
    .map(({ role, parts }) => ({ role, parts: writeParts(parts) }))
    .flatMap((turn) => (capabilities.mixesTools ? [turn] : unmixed(turn, dropped)))
    .map(({ role, parts }) => `{"role":"${role}","content":${jsonArrayOf(withWords(parts))}}`)
}

/** Puts tool results into a turn of their own, and drops parts that are in the same turn as tool calls. */
function unmixed(turn: WrittenTurn, dropped: DroppedFields): WrittenTurn[] {
  const { role, parts } = turn
  if (role === 'assistant') {
    const calls = parts.filter(({ kind }) => kind === 'tool-call')
    if (calls.length === 0 || calls.length === parts.length) return [turn]
    reportDropped(dropped, 'content')
    return [{ role, parts: calls }]
  }
  const results = parts.filter(isResult)
  const others = parts.filter((part) => !isResult(part))
  if (results.length === 0 || others.length === 0) return [turn]
  return [
    { role, parts: results },
    { role: 'assistant', parts: [] },
    { role, parts: others },
  ]
}

function isResult({ kind }: Written): boolean {
  return kind === 'tool-result'
}

function withWords(parts: readonly Written[]): readonly string[] {
  const blocks = parts.flatMap((part) => part.blocks)
  const hasDocument = parts.some((part) => part.blocks[0]?.startsWith('{"document"') === true)
  const isSilent = hasDocument && parts.every(({ kind }) => kind !== 'text')
  return blocks.length === 0 || isSilent ? [...blocks, TEXT_BLOCK_PLACEHOLDER] : blocks
}

/**
 * Encodes `toolConfig`; undefined without tools. If the conversation contains earlier calls, their tools must
 * be sent: tools that the client no longer offers are added with only their names. Converse does not have the
 * choice `none`, so the tools are left out, unless earlier calls need them.
 */
function encodeTools(
  conversation: Conversation,
  capabilities: ConverseCapabilities,
  enforced: EnforcedSchemas,
  dropped: DroppedFields,
): string | undefined {
  const { toolChoice, parallelTools, webSearch } = conversation
  dropSearchRules(webSearch, dropped)
  if (webSearch) reportDropped(dropped, 'tools.web_search')
  if (parallelTools === false) reportDropped(dropped, 'parallel_tool_calls')
  const called = calledTools(conversation)
  const offered = toolChoice?.kind === 'none' && called.size === 0 ? [] : conversation.tools
  const tools = offered.length > 0 ? offered : [...called].map(plainTool)
  if (tools.length === 0) {
    if (toolChoice?.kind === 'any' || toolChoice?.kind === 'tool') reportDropped(dropped, 'tool_choice')
    return undefined
  }
  if (offered.length === 0 && toolChoice && toolChoice.kind !== 'none') reportDropped(dropped, 'tool_choice')
  const choice = offered.length > 0 ? choiceOf(toolChoice, capabilities, dropped) : undefined
  // If the model cannot be forced to call a tool by name, only the named tool is sent.
  const isNamed = choice === ANY && toolChoice?.kind === 'tool'
  const chosen = isNamed ? tools.filter(({ name }) => name === toolChoice.name) : tools
  if (chosen.length === 0) throw new WireError('invalid_request', 'tool_choice: expected one of the tools')
  const writer = new BlockWriter(capabilities, dropped)
  const texts = chosen.flatMap((tool) => [
    encodeTool(tool, capabilities, enforced, dropped),
    ...writer.cachePoint(tool.cache),
  ])
  return renderObject([
    ['tools', jsonArrayOf(texts)],
    ['toolChoice', choice],
  ])
}

const ANY = '{"any":{}}'

function choiceOf(
  choice: ToolChoice | undefined,
  { choices }: ConverseCapabilities,
  dropped: DroppedFields,
): string | undefined {
  switch (choice?.kind) {
    case undefined:
      return undefined
    case 'auto':
      return '{"auto":{}}'
    case 'none':
      reportDropped(dropped, 'tool_choice')
      return undefined
    case 'any':
    case 'tool':
      if (choices === 'tool' && choice.kind === 'tool') return JSON.stringify({ tool: { name: choice.name } })
      if (choices !== 'auto') return ANY
      reportDropped(dropped, 'tool_choice')
      return undefined
  }
}

function encodeTool(
  tool: Tool,
  { takesStrict }: ConverseCapabilities,
  enforced: EnforcedSchemas,
  dropped: DroppedFields,
): string {
  const isRefused = tool.strict === true && !takesStrict
  if (isRefused) reportDropped(dropped, 'tools.strict')
  const offered = isRefused ? { ...tool, strict: undefined } : tool
  const { name, description, schema, strict } = toolForClaude(offered, withType, enforced, dropped)
  const spec = renderObject([
    // Upstreams refuse an empty description.
    ...jsonMembersOf({ name, description: description || undefined }),
    ['inputSchema', renderObject([['json', schema]])],
    ['strict', strict === true ? 'true' : undefined],
  ])
  return renderObject([['toolSpec', spec]])
}

/** Adds `type` to the root of a schema without it, because upstreams require it. */
function withType(schema: string): string {
  const given = parseRecord(schema) ?? {}
  if (Object.hasOwn(given, 'type')) return schema
  return `{"type":"object"${Object.keys(given).length > 0 ? ',' : ''}${schema.trimStart().slice(1)}`
}

function calledTools({ turns }: Conversation): ReadonlySet<string> {
  const calls = turns.flatMap(({ parts }) => parts).filter((part) => part.kind === 'tool-call')
  return new Set(calls.map(({ name }) => name))
}

function plainTool(name: string): Tool {
  return { name, description: undefined, schema: undefined, strict: undefined }
}
