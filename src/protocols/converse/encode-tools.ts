import { GatewayError } from '../../errors.ts'
import type { Dropped } from '../codec.ts'
import type { Conversation, Tool, ToolChoice } from '../conversation.ts'
import type { ConverseCapabilities } from '../converse-capabilities.ts'
import { arrayOf, membersOf, objectOf } from '../json/json-text.ts'
import { parseRecord } from '../json/record.ts'
import { drop } from './dropped-fields.ts'
import { BlockWriter } from './encode-blocks.ts'

/**
 * Encodes `toolConfig`; undefined without tools. A conversation with earlier calls needs their tools: those
 * that the client no longer offers are added with only their names. Converse has no choice `none`: the tools
 * are left out, unless earlier calls need them.
 */
export function encodeTools(
  conversation: Conversation,
  capabilities: ConverseCapabilities,
  dropped: Dropped,
): string | undefined {
  const { toolChoice, parallelTools, webSearch } = conversation
  if (webSearch) drop(dropped, 'tools.web_search')
  if (parallelTools === false) drop(dropped, 'parallel_tool_calls')
  const called = calledTools(conversation)
  const offered = toolChoice?.kind === 'none' && called.size === 0 ? [] : conversation.tools
  const tools = offered.length > 0 ? offered : [...called].map(plainTool)
  if (tools.length === 0) {
    if (toolChoice?.kind === 'any' || toolChoice?.kind === 'tool') drop(dropped, 'tool_choice')
    return undefined
  }
  if (offered.length === 0 && toolChoice && toolChoice.kind !== 'none') drop(dropped, 'tool_choice')
  const choice = offered.length > 0 ? choiceOf(toolChoice, capabilities, dropped) : undefined
  // If the model cannot be forced to call a tool by name, the named tool is sent alone.
  const isNamed = choice === ANY && toolChoice?.kind === 'tool'
  const chosen = isNamed ? tools.filter(({ name }) => name === toolChoice.name) : tools
  if (chosen.length === 0) throw new GatewayError('invalid_request', 'tool_choice: expected one of the tools')
  const writer = new BlockWriter(capabilities, dropped)
  const texts = chosen.flatMap((tool) => [
    encodeTool(tool, capabilities, dropped),
    ...writer.cachePoint(tool.cache),
  ])
  return objectOf([
    ['tools', arrayOf(texts)],
    ['toolChoice', choice],
  ])
}

const ANY = '{"any":{}}'

function choiceOf(
  choice: ToolChoice | undefined,
  { choices }: ConverseCapabilities,
  dropped: Dropped,
): string | undefined {
  switch (choice?.kind) {
    case undefined:
      return undefined
    case 'auto':
      return '{"auto":{}}'
    case 'none':
      drop(dropped, 'tool_choice')
      return undefined
    case 'any':
    case 'tool':
      if (choices === 'tool' && choice.kind === 'tool') return JSON.stringify({ tool: { name: choice.name } })
      if (choices !== 'auto') return ANY
      drop(dropped, 'tool_choice')
      return undefined
  }
}

function encodeTool(
  { name, description, schema = '{}', strict }: Tool,
  { takesStrict }: ConverseCapabilities,
  dropped: Dropped,
): string {
  if (strict === true && !takesStrict) drop(dropped, 'tools.strict')
  const spec = objectOf([
    // Upstreams refuse an empty description.
    ...membersOf({ name, description: description || undefined }),
    ['inputSchema', objectOf([['json', withType(schema)]])],
    ['strict', strict === true && takesStrict ? 'true' : undefined],
  ])
  return objectOf([['toolSpec', spec]])
}

/** Adds `type` at the root of a schema, because upstreams require it. */
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
