import { TOOL_CHOICE_KINDS, TOOL_CHOICE_MODES, TOOL_CHOICE_WORDS } from '../openai-tools.ts'
import type { Conversation, Tool, ToolChoice, ClientTool } from '../conversation.ts'
import { refuseField } from '../field-check.ts'
import {
  requireEnumValue,
  type Fields,
  requireObject,
  requireArray,
  nullToUndefined,
  requireText,
} from '../field.ts'
import type { OfferedTools } from './decode/tools.ts'

/** The tools that may be called, and how their use is restricted. */
type Offer = Pick<Conversation, 'tools' | 'toolChoice' | 'webSearch'>

const UNAVAILABLE = 'a tool that this model can be given'

/**
 * Decodes `tool_choice`, which can name only tools that were not dropped. With `allowed_tools`, keeps only
 * the tools that it names. Throws `invalid_request` if only a dropped tool would be allowed.
 */
export function decodeToolChoice(value: unknown, offered: OfferedTools): Offer {
  const { tools, webSearch } = offered
  const choice = nullToUndefined(value)
  if (choice === undefined) return { tools, webSearch, toolChoice: undefined }
  if (typeof choice === 'string') {
    const kind = requireEnumValue(TOOL_CHOICE_KINDS, choice, 'tool_choice')
    if (kind === 'any' && tools.length === 0 && offered.hasDropped)
      refuseField('tool_choice', UNAVAILABLE, 'tools that only their provider can run')
    return { tools, webSearch, toolChoice: { kind } }
  }
  const fields = requireObject(choice, 'tool_choice')
  if (fields['type'] === 'allowed_tools') return decodeAllowed(fields, offered)
  if (webSearch && isSearch(fields))
    return { tools, webSearch: { ...webSearch, isForced: true }, toolChoice: undefined }
  const chosen = new ToolFinder(tools).find(fields, 'tool_choice')
  if (!chosen) refuseField('tool_choice', UNAVAILABLE, 'one that it cannot be given')
  return { tools, webSearch, toolChoice: { kind: 'tool', name: chosen.name } }
}

/** Decodes `allowed_tools`. It may also name dropped tools, if at least one of its other tools is left. */
function decodeAllowed(choice: Fields, { tools, webSearch }: OfferedTools): Offer {
  const kind = requireEnumValue(TOOL_CHOICE_MODES, choice['mode'], 'tool_choice.mode')
  const allowed = new Set<Tool>()
  const choosable = new ToolFinder(tools)
  let searches = false
  const named = requireArray(choice['tools'], 'tool_choice.tools')
  for (const [index, entry] of named.entries()) {
    const path = `tool_choice.tools[${index}]`
    const fields = requireObject(entry, path)
    const found = choosable.find(fields, path)
    if (found) allowed.add(found)
    else if (isSearch(fields)) searches = true
    else if (fields['type'] === 'function' || fields['type'] === 'custom')
      refuseField(`${path}.name`, `the name of a tool in 'tools'`, 'another name')
  }
  const search = searches ? webSearch : undefined
  const isForced = kind === 'any' && allowed.size === 0
  if (isForced && !search) refuseField('tool_choice.tools', UNAVAILABLE, 'none')
  const kept = tools.filter((tool) => allowed.has(tool))
  return {
    tools: kept,
    webSearch: search && isForced ? { ...search, isForced } : search,
    toolChoice: kept.length > 0 ? { kind } : undefined,
  }
}

function isSearch(choice: Fields): boolean {
  return String(choice['type']).startsWith('web_search')
}

/** How the client declared the tool. */
function formOf({ form, name }: Tool): ClientTool {
  return form ?? { type: 'function', name }
}

/** Finds a tool of the request by the type and name that a tool choice states. */
class ToolFinder {
  readonly #tools = new Map<string, Tool[]>()

  constructor(tools: readonly Tool[]) {
    for (const tool of tools) {
      const { type, name } = formOf(tool)
      const key = JSON.stringify([type, name])
      const named = this.#tools.get(key)
      if (named) named.push(tool)
      else this.#tools.set(key, [tool])
    }
  }

  /**
   * Finds the tool that a tool choice names. If the choice states a namespace, only tools in this namespace
   * are considered.
   */
  find(choice: Fields, path: string): Tool | undefined {
    const type = requireText(choice['type'], `${path}.type`)
    const name = type === 'function' || type === 'custom' ? requireText(choice['name'], `${path}.name`) : type
    const namespace = nullToUndefined(choice['namespace'])
    const named = this.#tools.get(JSON.stringify([type, name])) ?? []
    return namespace === undefined ? named[0] : named.find((tool) => formOf(tool).namespace === namespace)
  }
}

export function encodeToolChoice(choice: ToolChoice, tools: readonly Tool[]): unknown {
  if (choice.kind !== 'tool') return TOOL_CHOICE_WORDS[choice.kind]
  const isCustom = tools.some(({ name, form }) => name === choice.name && form?.custom)
  return { type: isCustom ? 'custom' : 'function', name: choice.name }
}
