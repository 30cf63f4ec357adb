import type { Dropped } from '../codec.ts'
import {
  TOOL_CHOICE_KINDS,
  TOOL_CHOICE_MODES,
  TOOL_CHOICE_WORDS,
  customTool,
  MAX_SEARCHES_BY_SIZE,
  searchSizeFor,
} from '../openai-tools.ts'
import type { Conversation, Grammar, SearchLocation, Tool, ToolChoice, WebSearch } from '../conversation.ts'
import { membersOf, renderObject } from '../json/json-edit.ts'
import type { Node, ScannedObject } from '../json/scanned-object.ts'
import { cacheControl, readCacheDirective } from './cache-control.ts'
import { reportDropped } from './dropped-fields.ts'
import {
  booleanAt,
  enumAt,
  type Fields,
  fieldsAt,
  listAt,
  nullToUndefined,
  schemaText,
  textAt,
} from '../field.ts'
import { refuse } from '../field-check.ts'

/**
 * Decodes the functions and custom tools in `tools`. Other types are dropped and reported. Some clients omit
 * the type of functions.
 */
export function decodeTools(scan: ScannedObject, dropped: Dropped): Tool[] {
  const list = scan.span('tools')
  const tools = listAt(nullToUndefined(scan.value('tools')) ?? [], 'tools')
  const nodes = list && tools.length > 0 ? scan.elements(list.node) : []
  return nodes.flatMap((node, index) => {
    const path = `tools[${index}]`
    const tool = fieldsAt(tools[index], path)
    const type = nullToUndefined(tool['type']) ?? 'function'
    if (type === 'function') return decodeFunction(scan, node, tool, path)
    if (textAt(type, `${path}.type`) === 'custom') return decodeCustom(tool, path)
    reportDropped(dropped, 'tools.unknown')
    return []
  })
}

function decodeFunction(scan: ScannedObject, node: Node, tool: Fields, path: string): Tool {
  const at = `${path}.function`
  const definition = fieldsAt(tool['function'], at)
  const description = nullToUndefined(definition['description'])
  const strict = nullToUndefined(definition['strict'])
  return {
    name: textAt(definition['name'], `${at}.name`),
    description: description === undefined ? undefined : textAt(description, `${at}.description`),
    schema: schemaText(scan, scan.memberOf(node, 'function'), 'parameters', at),
    strict: strict === undefined ? undefined : booleanAt(strict, `${at}.strict`),
    ...readCacheDirective(tool, path),
  }
}

function decodeCustom(tool: Fields, path: string): Tool {
  const at = `${path}.custom`
  const { name: given, description: text, format } = fieldsAt(tool['custom'], at)
  const name = textAt(given, `${at}.name`)
  const description = nullToUndefined(text) === undefined ? undefined : textAt(text, `${at}.description`)
  const grammar = nullToUndefined(format) === undefined ? undefined : decodeGrammar(format, `${at}.format`)
  const asFunction = customTool(description, grammar)
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
  const fields = fieldsAt(format, path)
  if (fields['type'] !== 'grammar') return undefined
  const { syntax, definition } = fieldsAt(fields['grammar'], `${path}.grammar`)
  return {
    syntax: textAt(syntax, `${path}.grammar.syntax`),
    definition: textAt(definition, `${path}.grammar.definition`),
  }
}

/** Encodes a tool as JSON text. */
export function encodeTool({ name, description, schema, strict, cache }: Tool): string {
  const definition = renderObject([
    ...membersOf({ name, description }),
    ['parameters', schema],
    ...membersOf({ strict }),
  ])
  return renderObject([['type', '"function"'], ['function', definition], ...membersOf(cacheControl(cache))])
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
    return { tools, toolChoice: { kind: enumAt(TOOL_CHOICE_KINDS, value, 'tool_choice') } }
  const choice = fieldsAt(value, 'tool_choice')
  const type = textAt(choice['type'], 'tool_choice.type')
  if (type === 'allowed_tools') return decodeAllowed(choice['allowed_tools'], tools)
  if (type !== 'function' && type !== 'custom')
    refuse(
      'tool_choice.type',
      `'function', 'custom' or 'allowed_tools'`,
      'a type that cannot be passed on to this model',
    )
  const chosen = fieldsAt(choice[type], `tool_choice.${type}`)
  return { tools, toolChoice: { kind: 'tool', name: textAt(chosen['name'], `tool_choice.${type}.name`) } }
}

/** Decodes `allowed_tools`. It may name tools of kinds that were already dropped; these names are ignored. */
function decodeAllowed(value: unknown, tools: readonly Tool[]): Offer {
  const path = 'tool_choice.allowed_tools'
  const { mode, tools: named } = fieldsAt(value, path)
  const kind = enumAt(TOOL_CHOICE_MODES, mode, `${path}.mode`)
  const names = new Set<string>()
  for (const [i, entry] of listAt(named, `${path}.tools`).entries()) {
    const at = `${path}.tools[${i}]`
    const tool = fieldsAt(entry, at)
    const type = textAt(tool['type'], `${at}.type`)
    if (type !== 'function' && type !== 'custom') continue
    const name = textAt(fieldsAt(tool[type], `${at}.${type}`)['name'], `${at}.${type}.name`)
    if (!tools.some((offered) => offered.name === name))
      refuse(`${at}.${type}.name`, `the name of a tool in 'tools'`, 'another name')
    names.add(name)
  }
  return { tools: tools.filter(({ name }) => names.has(name)), toolChoice: { kind } }
}

/** Encodes the tool choice. */
export function encodeToolChoice(choice: ToolChoice): unknown {
  if (choice.kind === 'tool') return { type: 'function', function: { name: choice.name } }
  return TOOL_CHOICE_WORDS[choice.kind]
}

const PLACES = ['city', 'country', 'region', 'timezone'] as const

/** Decodes `web_search_options`. */
export function decodeWebSearch(value: unknown): WebSearch {
  const options = fieldsAt(value, 'web_search_options')
  const size = nullToUndefined(options['search_context_size']) ?? 'medium'
  const location = decodeLocation(options)
  return {
    maxUses: enumAt(MAX_SEARCHES_BY_SIZE, size, 'web_search_options.search_context_size'),
    ...(location && { location }),
  }
}

function decodeLocation(options: Fields): SearchLocation | undefined {
  const path = 'web_search_options.user_location'
  const value = nullToUndefined(options['user_location'])
  if (value === undefined) return undefined
  const place = fieldsAt(fieldsAt(value, path)['approximate'], `${path}.approximate`)
  const named = PLACES.flatMap((key) => {
    const name = nullToUndefined(place[key])
    return name === undefined ? [] : [[key, textAt(name, `${path}.approximate.${key}`)] as const]
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
export function canSearch(model: string): boolean {
  return /search|(?:^|\/)sonar/i.test(model)
}
