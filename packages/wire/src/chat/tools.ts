import type { DroppedFields } from '../codec.ts'
import {
  TOOL_CHOICE_KINDS,
  TOOL_CHOICE_MODES,
  TOOL_CHOICE_WORDS,
  customToolAsFunction,
  MAX_SEARCHES_BY_SIZE,
  searchSizeFor,
} from '../openai-tools.ts'
import type { Conversation, Grammar, SearchLocation, Tool, ToolChoice, WebSearch } from '../conversation.ts'
import { jsonMembersOf, renderObject } from '../json/json-edit.ts'
import { asRecord } from '../json/record.ts'
import type { Node, ScannedObject } from '../json/scanned-object.ts'
import { writeCacheDirective, readCacheDirective } from './cache-control.ts'
import { reportDropped } from './dropped-fields.ts'
import {
  hasOtherMembers,
  requireBoolean,
  requireEnumValue,
  type Fields,
  requireObject,
  requireArray,
  nullToUndefined,
  readSchemaText,
  requireText,
} from '../field.ts'
import { refuseField } from '../field-check.ts'

const TOOL_FIELDS: ReadonlySet<string> = new Set(['type', 'function', 'custom', 'cache_control'])
const DEFINITION_FIELDS: ReadonlySet<string> = new Set([
  'name',
  'description',
  'parameters',
  'strict',
  'format',
])

/**
 * Decodes the functions and custom tools in `tools`. Other types are dropped and reported. Some clients omit
 * the type of functions.
 */
export function decodeTools(scan: ScannedObject, dropped: DroppedFields): Tool[] {
  const list = scan.span('tools')
  const tools = requireArray(nullToUndefined(scan.value('tools')) ?? [], 'tools')
  const nodes = list && tools.length > 0 ? scan.elements(list.node) : []
  return nodes.flatMap((node, index) => {
    const path = `tools[${index}]`
    const tool = requireObject(tools[index], path)
    const type = nullToUndefined(tool['type']) ?? 'function'
    const kind = requireText(type, `${path}.type`)
    const definition = asRecord(tool[kind]) ?? {}
    if (hasOtherMembers(tool, TOOL_FIELDS) || hasOtherMembers(definition, DEFINITION_FIELDS))
      reportDropped(dropped, 'tools.unknown')
    if (kind === 'function') return decodeFunction(scan, node, tool, path)
    if (kind === 'custom') return decodeCustom(tool, path)
    reportDropped(dropped, 'tools.unknown')
    return []
  })
}

function decodeFunction(scan: ScannedObject, node: Node, tool: Fields, path: string): Tool {
  const at = `${path}.function`
  const definition = requireObject(tool['function'], at)
  const description = nullToUndefined(definition['description'])
  const strict = nullToUndefined(definition['strict'])
  return {
    name: requireText(definition['name'], `${at}.name`),
    description: description === undefined ? undefined : requireText(description, `${at}.description`),
    schema: readSchemaText(scan, scan.memberOf(node, 'function'), 'parameters', at),
    strict: strict === undefined ? undefined : requireBoolean(strict, `${at}.strict`),
    ...readCacheDirective(tool, path),
  }
}

function decodeCustom(tool: Fields, path: string): Tool {
  const at = `${path}.custom`
  const { name: given, description: text, format } = requireObject(tool['custom'], at)
  const name = requireText(given, `${at}.name`)
  const description = nullToUndefined(text) === undefined ? undefined : requireText(text, `${at}.description`)
  const grammar = nullToUndefined(format) === undefined ? undefined : decodeGrammar(format, `${at}.format`)
  const asFunction = customToolAsFunction(description, grammar)
  return {
    name,
    description: asFunction.description || undefined,
    schema: asFunction.schema,
    strict: undefined,
    form: { type: 'custom', name, custom: { description, grammar } },
    ...readCacheDirective(tool, path),
  }
}

function decodeGrammar(format: unknown, path: string): Grammar | undefined {
  const fields = requireObject(format, path)
  if (fields['type'] !== 'grammar') return undefined
  const { syntax, definition } = requireObject(fields['grammar'], `${path}.grammar`)
  return {
    syntax: requireText(syntax, `${path}.grammar.syntax`),
    definition: requireText(definition, `${path}.grammar.definition`),
  }
}

/** Encodes a tool as JSON text. */
export function encodeTool({ name, description, schema, strict, cache }: Tool): string {
  const definition = renderObject([
    ...jsonMembersOf({ name, description }),
    ['parameters', schema],
    ...jsonMembersOf({ strict }),
  ])
  return renderObject([
    ['type', '"function"'],
    ['function', definition],
    ...jsonMembersOf(writeCacheDirective(cache)),
  ])
}

/** The tools that may be called, and the rule for calling them. */
type Offer = Pick<Conversation, 'tools' | 'toolChoice'>

/**
 * Decodes `tool_choice`. With `allowed_tools`, only the tools that it names are kept. Throws
 * `invalid_request` for a tool that is not offered, and if a tool is forced that is neither a function nor a
 * custom tool.
 */
export function decodeToolChoice(value: unknown, tools: readonly Tool[]): Offer {
  if (value === undefined) return { tools, toolChoice: undefined }
  if (typeof value === 'string')
    return { tools, toolChoice: { kind: requireEnumValue(TOOL_CHOICE_KINDS, value, 'tool_choice') } }
  const choice = requireObject(value, 'tool_choice')
  const type = requireText(choice['type'], 'tool_choice.type')
  if (type === 'allowed_tools') return decodeAllowed(choice['allowed_tools'], tools)
  if (type !== 'function' && type !== 'custom')
    refuseField(
      'tool_choice.type',
      `'function', 'custom' or 'allowed_tools'`,
      'a type that cannot be passed on to this model',
    )
  const chosen = requireObject(choice[type], `tool_choice.${type}`)
  return {
    tools,
    toolChoice: { kind: 'tool', name: requireText(chosen['name'], `tool_choice.${type}.name`) },
  }
}

/** Decodes `allowed_tools`. It may name tools of kinds that were already dropped; these names are ignored. */
function decodeAllowed(value: unknown, tools: readonly Tool[]): Offer {
  const path = 'tool_choice.allowed_tools'
  const { mode, tools: named } = requireObject(value, path)
  const kind = requireEnumValue(TOOL_CHOICE_MODES, mode, `${path}.mode`)
  const offered = new Set(tools.map(({ name }) => name))
  const names = new Set<string>()
  for (const [i, entry] of requireArray(named, `${path}.tools`).entries()) {
    const at = `${path}.tools[${i}]`
    const tool = requireObject(entry, at)
    const type = requireText(tool['type'], `${at}.type`)
    if (type !== 'function' && type !== 'custom') continue
    const name = requireText(requireObject(tool[type], `${at}.${type}`)['name'], `${at}.${type}.name`)
    if (!offered.has(name)) refuseField(`${at}.${type}.name`, `the name of a tool in 'tools'`, 'another name')
    names.add(name)
  }
  return { tools: tools.filter(({ name }) => names.has(name)), toolChoice: { kind } }
}

export function encodeToolChoice(choice: ToolChoice): unknown {
  if (choice.kind === 'tool') return { type: 'function', function: { name: choice.name } }
  return TOOL_CHOICE_WORDS[choice.kind]
}

const SEARCH_FIELDS: ReadonlySet<string> = new Set(['search_context_size', 'user_location'])
const PLACES = ['city', 'country', 'region', 'timezone'] as const

/** Decodes `web_search_options`. */
export function decodeWebSearch(value: unknown, dropped: DroppedFields): WebSearch {
  const options = requireObject(value, 'web_search_options')
  if (hasOtherMembers(options, SEARCH_FIELDS)) reportDropped(dropped, 'web_search')
  const size = nullToUndefined(options['search_context_size']) ?? 'medium'
  const location = decodeLocation(options)
  return {
    maxUses: requireEnumValue(MAX_SEARCHES_BY_SIZE, size, 'web_search_options.search_context_size'),
    ...(location && { location }),
  }
}

function decodeLocation(options: Fields): SearchLocation | undefined {
  const path = 'web_search_options.user_location'
  const value = nullToUndefined(options['user_location'])
  if (value === undefined) return undefined
  const place = requireObject(requireObject(value, path)['approximate'], `${path}.approximate`)
  const named = PLACES.flatMap((key) => {
    const name = nullToUndefined(place[key])
    return name === undefined ? [] : [[key, requireText(name, `${path}.approximate.${key}`)] as const]
  })
  return named.length > 0 ? Object.fromEntries(named) : undefined
}

/** Encodes a web search with the smallest context size that allows this many uses. */
export function encodeWebSearch({ maxUses, location }: WebSearch): unknown {
  return {
    search_context_size: searchSizeFor(maxUses),
    ...(location && { user_location: { type: 'approximate', approximate: location } }),
  }
}

/** Whether a model is known to support `web_search_options`. Other models refuse or ignore this field. */
export function supportsWebSearch(model: string): boolean {
  return /search|(?:^|\/)sonar/i.test(model)
}
