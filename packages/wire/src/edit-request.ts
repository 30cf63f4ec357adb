import { reroutingField, reroutingName } from './allowed-field.ts'
import type { UpstreamSettings } from './upstream-settings.ts'
import { restrictingPart } from './client-provider.ts'
import { changedArray, withMember } from './json/change-array.ts'
import { edit, type Edits } from './json/json-edit.ts'
import { scanObject } from './json/json-scan.ts'
import { objectOf } from './json/json-text.ts'
import type { Node, ScannedObject } from './json/scanned-object.ts'
import { withMembers } from './json/with-members.ts'

/** Native request for a channel. */
export interface EditedRequest {
  /** The client's own Buffer if nothing had to change. */
  readonly body: Buffer
  /** Names of fields that were left out because they may lead to another model or price. */
  readonly dropped: readonly string[]
}

/** Hosts of Google. Their chat endpoint accepts settings of thinking only in `extra_body`. */
const GOOGLE_HOST = /(?:^|\.)googleapis\.com$/

const NOTHING: readonly string[] = []

/**
 * Applies changes to a native request and removes what may lead to another model or price unless the channel
 * allows it. `isOpen` is pass-through mode, which removes nothing. `docs/api.md: Other models and prices`.
 */
export function editRequest(
  scan: ScannedObject,
  channel: UpstreamSettings,
  isOpen: boolean,
  { remove, replace }: Edits,
): EditedRequest {
  const removal = isOpen ? undefined : rerouting(scan, channel, replace)
  if (!removal) return { body: edit(scan.bytes, scan, { remove, replace }), dropped: NOTHING }
  const edits = {
    remove: [...remove, ...removal.remove],
    replace: new Map([...replace, ...removal.replace]),
  }
  return { body: edit(scan.bytes, scan, edits), dropped: removal.dropped }
}

/** Returns the names of top-level members that may lead to another model or price. */
export function reroutingNames(scan: ScannedObject): string[] {
  return [...scan.members.keys()].flatMap((member) => reroutingName(member) ?? [])
}

/** Members to remove, and the names that are reported as dropped. */
interface Removal extends Edits {
  readonly remove: string[]
  readonly replace: Map<string, string>
  readonly dropped: string[]
}

/** `replaced`: members that are sent with a text other than the client's. */
function rerouting(
  scan: ScannedObject,
  { allow, base_url: baseUrl }: UpstreamSettings,
  replaced: ReadonlyMap<string, string>,
): Removal | undefined {
  let removal: Removal | undefined
  const changed = (name: string): Removal => {
    removal ??= { remove: [], replace: new Map(), dropped: [] }
    if (!removal.dropped.includes(name)) removal.dropped.push(name)
    return removal
  }
  for (const { key, node } of scan.members.values()) {
    const withoutModels = WITHOUT_MODELS.get(key)
    if (withoutModels && !allow.has('models')) {
      const other = replaced.get(key)
      const text = other === undefined ? withoutModels(scan, node) : changedText(other, withoutModels)
      if (text !== undefined) changed('tools.model').replace.set(key, text)
    }
    const field = reroutingField(key)
    if (!field || allow.has(field)) continue
    const kept = keptPart(scan, key, node, baseUrl)
    if (kept === scan.textOf(node)) continue
    const { remove, replace } = changed(reroutingName(key) ?? field)
    if (kept === undefined) remove.push(key)
    else replace.set(key, kept)
  }
  return removal
}

/** JSON text of the part of a member that is always kept; undefined if there is none. */
function keptPart(scan: ScannedObject, key: string, node: Node, baseUrl: string): string | undefined {
  if (scan.kindOf(node) !== 'object') return undefined
  if (key === 'provider') return restrictingPart(scan, node)
  if (key !== 'extra_body' || !GOOGLE_HOST.test(new URL(baseUrl).hostname)) return undefined
  const google = scan.memberOf(node, 'google')
  if (google === undefined || scan.kindOf(google) !== 'object') return undefined
  const settings = withMembers(scan, google, (name) => name === 'thinking_config')
  if (settings === undefined) return undefined
  const isAll = settings === scan.textOf(google) && scan.values(node).length === 1
  return isAll ? scan.textOf(node) : objectOf([['google', settings]])
}

/**
 * Members with tools, or with items that have tools, and functions that remove the model names from those
 * tools.
 */
const WITHOUT_MODELS: ReadonlyMap<string, (scan: ScannedObject, list: Node) => string | undefined> = new Map([
  ['tools', toolsWithoutModels],
  ['input', itemsWithoutModels],
])

/** Applies a change to JSON text that will replace a member of the request. */
function changedText(
  text: string,
  change: (scan: ScannedObject, list: Node) => string | undefined,
): string | undefined {
  const scan = scanObject(Buffer.from(`{"_":${text}}`))
  const list = scan.span('_')
  return list && change(scan, list.node)
}

/** Tools without the models that they name; undefined if none of them names one. */
function toolsWithoutModels(scan: ScannedObject, tools: Node): string | undefined {
  if (scan.kindOf(tools) !== 'array') return undefined
  return changedArray(scan, tools, (tool) => {
    if (scan.kindOf(tool) !== 'object' || scan.memberOf(tool, 'model') === undefined) return 'stays'
    return { text: withMembers(scan, tool, (name) => name !== 'model') ?? '{}' }
  })
}

function itemsWithoutModels(scan: ScannedObject, items: Node): string | undefined {
  // The input of embeddings is texts or thousands of numbers, so looking at the first element is enough.
  const [first] = scan.kindOf(items) === 'array' ? scan.elements(items) : []
  if (first === undefined || scan.kindOf(first) !== 'object') return undefined
  return changedArray(scan, items, (item) => {
    const tools = scan.kindOf(item) === 'object' ? scan.memberOf(item, 'tools') : undefined
    const text = tools === undefined ? undefined : toolsWithoutModels(scan, tools)
    return tools === undefined || text === undefined ? 'stays' : { text: withMember(scan, item, tools, text) }
  })
}
