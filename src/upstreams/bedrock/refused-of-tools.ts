import { changedArray, type Fate } from '../../protocols/json/changed-array.ts'
import { edit } from '../../protocols/json/json-edit.ts'
import { scanObject } from '../../protocols/json/json-scan.ts'
import type { Node, ScannedObject } from '../../protocols/json/scanned-object.ts'

/** Beginnings of the types of tools that Anthropic runs, which Bedrock does not. */
const NOT_RUN = ['web_search', 'web_fetch', 'code_execution'] as const
/** Beginning of the types of tools that find others. */
const SEARCH = 'tool_search_tool'
/** Member of a tool that is found by another. */
const DEFERRED = 'defer_loading'

/** Whether a tool is there that finds others, for which Bedrock wants a beta feature. */
export function hasToolSearch(scan: ScannedObject): boolean {
  return toolsIn(scan).some((tool) => typeOf(scan, tool).startsWith(SEARCH))
}

/** Tools without what Bedrock refuses of them, as JSON text; `[]` if none is left. */
export interface TakenTools {
  readonly text: string
  readonly dropped: readonly string[]
}

/** The tools that Bedrock takes; undefined where it takes all. `searches`: tools may wait until found. */
export function takenTools(scan: ScannedObject, searches: boolean): TakenTools | undefined {
  const tools = scan.span('tools')
  if (!tools || scan.kind('tools') !== 'array') return undefined
  const refused = searches ? ['eager_input_streaming'] : ['eager_input_streaming', DEFERRED]
  const dropped = new Set<string>()
  const text = changedArray(scan, tools.node, (tool): Fate => {
    if (scan.kindOf(tool) !== 'object') return 'stays'
    const type = typeOf(scan, tool)
    const family = NOT_RUN.find((name) => type.startsWith(name))
    if (family !== undefined) {
      dropped.add(`tools.${family}`)
      return 'goes'
    }
    const remove = refused.filter((name) => scan.memberOf(tool, name) !== undefined)
    if (remove.length === 0) return 'stays'
    for (const name of remove) dropped.add(name)
    const bytes = Buffer.from(scan.textOf(tool))
    return { text: edit(bytes, scanObject(bytes), { remove, replace: new Map() }).toString() }
  })
  return text === undefined ? undefined : { text, dropped: [...dropped] }
}

function toolsIn(scan: ScannedObject): readonly Node[] {
  const tools = scan.span('tools')
  if (!tools || scan.kind('tools') !== 'array') return []
  return scan.elements(tools.node).filter((tool) => scan.kindOf(tool) === 'object')
}

function typeOf(scan: ScannedObject, tool: Node): string {
  const type = scan.memberOf(tool, 'type')
  return type !== undefined && scan.kindOf(type) === 'string' ? (scan.parse(type) as string) : ''
}
