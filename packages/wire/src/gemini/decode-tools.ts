import type { Dropped } from '../codec.ts'
import type { Conversation, Tool, ToolChoice, WebSearch } from '../conversation.ts'
import { kindName, refuse } from '../field-check.ts'
import { type Fields, enumAt, fieldsAt, listAt, textAt } from '../field.ts'
import type { Node, ScannedObject } from '../json/scanned-object.ts'
import { drop } from './dropped-fields.ts'
import { lowerCaseTypes } from './schema-case.ts'
import { either, nodeOf, topMember, topValue } from './spelling.ts'

type Offer = Pick<Conversation, 'tools' | 'webSearch' | 'toolChoice' | 'parallelTools'>

/** Maximum searches of a request; Gemini requests cannot state one. */
const WEB_SEARCH: WebSearch = { maxUses: 5 }

const MODES: ReadonlyMap<string, 'auto' | 'any' | 'none'> = new Map([
  ['AUTO', 'auto'],
  ['MODE_UNSPECIFIED', 'auto'],
  ['VALIDATED', 'auto'],
  ['ANY', 'any'],
  ['NONE', 'none'],
])

/**
 * Reads the tools and the tool choice. Of the provider's own tools, only web search has an equivalent in
 * other dialects. Throws `invalid_request` with the path of an unreadable value, and for the choice of a tool
 * that is not offered.
 */
export function decodeTools(scan: ScannedObject, dropped: Dropped): Offer {
  const tools: Tool[] = []
  let webSearch: WebSearch | undefined
  const list = topMember(scan, 'tools')
  const nodes =
    list === undefined ? [] : scan.kindOf(list.node) === 'array' ? scan.elements(list.node) : [list.node]
  for (const [index, node] of nodes.entries()) {
    const path = `tools[${index}]`
    const tool = fieldsAt(scan.parse(node), path)
    tools.push(...decodeFunctions(scan, node, `${path}.functionDeclarations`, dropped))
    if (either(tool, 'googleSearch') !== undefined || either(tool, 'googleSearchRetrieval') !== undefined)
      webSearch = WEB_SEARCH
    if (hasOthers(tool)) drop(dropped, 'tools.server')
  }
  return { webSearch, parallelTools: undefined, ...decodeChoice(scan, tools, dropped) }
}

const READ =
  /^(?:functionDeclarations|function_declarations|googleSearch(?:Retrieval)?|google_search(?:_retrieval)?)$/

function hasOthers(tool: Fields): boolean {
  return Object.entries(tool).some(([key, value]) => value !== null && !READ.test(key))
}

function decodeFunctions(scan: ScannedObject, tool: Node, path: string, dropped: Dropped): Tool[] {
  const list = nodeOf(scan, tool, 'functionDeclarations')
  if (list === undefined) return []
  if (scan.kindOf(list) !== 'array') refuse(path, 'an array', kindName(scan, list))
  return scan.elements(list).map((node, index) => {
    const at = `${path}[${index}]`
    const given = fieldsAt(scan.parse(node), at)
    if (either(given, 'response') !== undefined || either(given, 'responseJsonSchema') !== undefined)
      drop(dropped, 'tools.response')
    const description = either(given, 'description')
    return {
      name: textAt(given['name'], `${at}.name`),
      description:
        description === undefined ? undefined : textAt(description, `${at}.description`) || undefined,
      schema: schemaOf(scan, node, at),
      strict: undefined,
    }
  })
}

function schemaOf(scan: ScannedObject, declaration: Node, path: string): string | undefined {
  const json = objectIn(scan, declaration, 'parametersJsonSchema', path)
  if (json !== undefined) return scan.textOf(json)
  const openApi = objectIn(scan, declaration, 'parameters', path)
  return openApi === undefined ? undefined : lowerCaseTypes(scan, openApi)
}

/** Finds a schema in an object. Throws `invalid_request` with the path if it is not an object. */
export function objectIn(
  scan: ScannedObject,
  holder: Node | undefined,
  name: string,
  path: string,
): Node | undefined {
  const node = nodeOf(scan, holder, name)
  if (node !== undefined && scan.kindOf(node) !== 'object')
    refuse(`${path}.${name}`, 'an object', kindName(scan, node))
  return node
}

function decodeChoice(
  scan: ScannedObject,
  tools: readonly Tool[],
  dropped: Dropped,
): Pick<Offer, 'tools' | 'toolChoice'> {
  const config = topValue(scan, 'toolConfig')
  const holder = config === undefined ? {} : fieldsAt(config, 'toolConfig')
  const calling = either(holder, 'functionCallingConfig')
  if (calling === undefined) return { tools, toolChoice: undefined }
  const path = 'toolConfig.functionCallingConfig'
  const fields = fieldsAt(calling, path)
  const given = either(fields, 'mode')
  const kind =
    given === undefined
      ? undefined
      : enumAt(MODES, textAt(given, `${path}.mode`).toUpperCase(), `${path}.mode`)
  const allowed = either(fields, 'allowedFunctionNames')
  const names = allowed === undefined ? [] : listAt(allowed, `${path}.allowedFunctionNames`)
  if (tools.length === 0) {
    if (kind === 'any') drop(dropped, 'tool_choice')
    return { tools, toolChoice: undefined }
  }
  if (names.length === 0 || kind === 'none') return { tools, toolChoice: kind && { kind } }
  for (const [index, name] of names.entries())
    if (!tools.some((tool) => tool.name === name))
      refuse(`${path}.allowedFunctionNames[${index}]`, `the name of a function in 'tools'`, 'another name')
  return chosen(tools, kind ?? 'auto', names as readonly string[])
}

/**
 * A single allowed function becomes a choice of this function; with several, all other tools are left out.
 */
function chosen(
  tools: readonly Tool[],
  kind: 'auto' | 'any',
  names: readonly string[],
): { tools: readonly Tool[]; toolChoice: ToolChoice } {
  const [only, ...others] = names
  if (kind === 'any' && only !== undefined && others.length === 0)
    return { tools, toolChoice: { kind: 'tool', name: only } }
  return { tools: tools.filter(({ name }) => names.includes(name)), toolChoice: { kind } }
}
