import type { Dropped } from '../codec.ts'
import type { Conversation, SearchLocation, Tool, ToolChoice, WebSearch } from '../conversation.ts'
import { refuse } from '../field-check.ts'
import { asRecord } from '../json/record.ts'
import type { Node, ScannedObject } from '../json/scanned-object.ts'
import { readCache } from './cache-mark.ts'
import { drop } from './dropped-fields.ts'

type Offer = Pick<Conversation, 'tools' | 'webSearch' | 'toolChoice' | 'parallelTools'>

const WEB_SEARCH = /^web_search_\d+$/
/** Default maximum of searches: that of the search context size `medium`. */
const DEFAULT_SEARCHES = 5
const READ_FIELDS: ReadonlySet<string> = new Set([
  'type',
  'name',
  'description',
  'input_schema',
  'strict',
  'cache_control',
])
const SEARCH_FIELDS: ReadonlySet<string> = new Set(['type', 'name', 'max_uses', 'user_location'])
const PLACES = ['city', 'country', 'region', 'timezone'] as const

/**
 * Decodes the tools and the tool choice. Of the provider's own tools, only web search has an equivalent in
 * other dialects. If no tool is left, the choice is dropped.
 */
export function decodeTools(scan: ScannedObject, dropped: Dropped): Offer {
  const tools: Tool[] = []
  let webSearch: Offer['webSearch']
  const list = scan.span('tools')
  for (const [i, node] of (list?.count ? scan.elements(list.node) : []).entries()) {
    const tool = asRecord(scan.parse(node)) ?? {}
    const type = tool['type'] ?? 'custom'
    if (type === 'custom') tools.push(decodeTool(scan, node, tool, `tools[${i}]`, dropped))
    else if (typeof type === 'string' && WEB_SEARCH.test(type)) webSearch = decodeSearch(tool, dropped)
    else drop(dropped, 'tools.server')
  }
  const choice = asRecord(scan.value('tool_choice'))
  if (tools.length === 0) {
    if (choice && choice['type'] !== 'none') drop(dropped, 'tool_choice')
    return { tools, webSearch, toolChoice: undefined, parallelTools: undefined }
  }
  const disable = choice?.['disable_parallel_tool_use']
  return {
    tools,
    webSearch,
    toolChoice: choice && decodeChoice(choice),
    parallelTools: typeof disable === 'boolean' ? !disable : undefined,
  }
}

function decodeTool(
  scan: ScannedObject,
  node: Node,
  tool: Readonly<Record<string, unknown>>,
  path: string,
  dropped: Dropped,
): Tool {
  if (hasOthers(tool, READ_FIELDS)) drop(dropped, 'tools.unknown')
  const schema = scan.memberOf(node, 'input_schema')
  const { description, strict } = tool
  return {
    name: tool['name'] as string,
    description: typeof description === 'string' ? description : undefined,
    schema: schema === undefined ? undefined : scan.textOf(schema),
    strict: typeof strict === 'boolean' ? strict : undefined,
    ...readCache(tool, path),
  }
}

function decodeSearch(tool: Readonly<Record<string, unknown>>, dropped: Dropped): WebSearch {
  if (hasOthers(tool, SEARCH_FIELDS)) drop(dropped, 'web_search')
  const uses = tool['max_uses']
  const place = asRecord(tool['user_location'])
  const location: SearchLocation = Object.fromEntries(
    PLACES.map((name) => [name, place?.[name]]).filter(([, value]) => typeof value === 'string'),
  )
  return {
    maxUses: typeof uses === 'number' ? uses : DEFAULT_SEARCHES,
    listsPages: true,
    ...(Object.keys(location).length > 0 && { location }),
  }
}

function decodeChoice(choice: Readonly<Record<string, unknown>>): ToolChoice {
  switch (choice['type']) {
    case 'auto':
    case 'any':
    case 'none':
      return { kind: choice['type'] }
    case 'tool':
      return { kind: 'tool', name: choice['name'] as string }
    default:
      return refuse('tool_choice.type', `'auto', 'any', 'tool' or 'none'`, 'something else')
  }
}

function hasOthers(tool: Readonly<Record<string, unknown>>, read: ReadonlySet<string>): boolean {
  return Object.entries(tool).some(([key, value]) => !read.has(key) && value !== null)
}
