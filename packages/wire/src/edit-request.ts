import { isRouter, reroutingField, reroutingName, type UpstreamSettings } from './upstream-settings.ts'
import {
  renderArray,
  applyEdits,
  type Edits,
  renderObject,
  withMember,
  withMembers,
} from './json/json-edit.ts'
import { scanObject } from './json/json-scan.ts'
import type { Node, ScannedObject } from './json/scanned-object.ts'
import type { Dropped } from './codec.ts'

/** A native request, adapted to a channel. */
export interface EditedRequest {
  /** The client's own Buffer if nothing had to change. */
  readonly body: Buffer
  /** Names of fields that were left out because they may lead to another model or price. */
  readonly dropped: readonly string[]
}

/** Matches hosts of Google, whose chat endpoint accepts settings of thinking only in `extra_body`. */
const GOOGLE_HOST = /(?:^|\.)googleapis\.com$/

const NOTHING: readonly string[] = []

/**
 * Applies changes to a native request. Unless the channel allows it, removes what may lead to another model
 * or price. In pass-through mode (`isOpen`) nothing is removed. `docs/api.md: Other models and prices`.
 */
export function editRequest(
  scan: ScannedObject,
  channel: UpstreamSettings,
  isOpen: boolean,
  { remove, replace }: Edits,
): EditedRequest {
  const removal = isOpen ? undefined : rerouting(scan, channel, replace)
  if (!removal) return { body: applyEdits(scan.bytes, scan, { remove, replace }), dropped: NOTHING }
  const edits = {
    remove: [...remove, ...removal.remove],
    replace: new Map([...replace, ...removal.replace]),
  }
  return { body: applyEdits(scan.bytes, scan, edits), dropped: removal.dropped }
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

/** Determines what must be removed. `replaced`: members for which the gateway sends its own text. */
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
    const kept = partToKeep(scan, key, node, baseUrl)
    if (kept === scan.textOf(node)) continue
    const { remove, replace } = changed(reroutingName(key) ?? field)
    if (kept === undefined) remove.push(key)
    else replace.set(key, kept)
  }
  return removal
}

/** Reports whether settings of thinking in `extra_body` reach a channel's upstream. */
export function keepsGoogleThinking({ allow, base_url: baseUrl }: UpstreamSettings): boolean {
  return allow.has('extra_body') || GOOGLE_HOST.test(new URL(baseUrl).hostname)
}

/** JSON text of the part of a member that is always allowed; undefined if there is none. */
function partToKeep(scan: ScannedObject, key: string, node: Node, baseUrl: string): string | undefined {
  if (scan.kindOf(node) !== 'object') return undefined
  if (key === 'provider') return restrictingPart(scan, node)
  if (key !== 'extra_body' || !GOOGLE_HOST.test(new URL(baseUrl).hostname)) return undefined
  const google = scan.memberOf(node, 'google')
  if (google === undefined || scan.kindOf(google) !== 'object') return undefined
  const settings = withMembers(scan, google, (name) => name === 'thinking_config')
  if (settings === undefined) return undefined
  const isAll = settings === scan.textOf(google) && scan.values(node).length === 1
  return isAll ? scan.textOf(node) : renderObject([['google', settings]])
}

/**
 * Functions that remove model names from tools, by the member that contains the tools, or items with tools.
 */
const WITHOUT_MODELS: ReadonlyMap<string, (scan: ScannedObject, list: Node) => string | undefined> = new Map([
  ['tools', toolsWithoutModels],
  ['input', itemsWithoutModels],
])

/** Applies a change to a JSON text that replaces a member of the request. */
function changedText(
  text: string,
  change: (scan: ScannedObject, list: Node) => string | undefined,
): string | undefined {
  const scan = scanObject(Buffer.from(`{"_":${text}}`))
  const list = scan.span('_')
  return list && change(scan, list.node)
}

/** Returns the tools without the model names in them; undefined if none of them contains one. */
function toolsWithoutModels(scan: ScannedObject, tools: Node): string | undefined {
  if (scan.kindOf(tools) !== 'array') return undefined
  return renderArray(scan, tools, (tool) => {
    if (scan.kindOf(tool) !== 'object' || scan.memberOf(tool, 'model') === undefined) return 'stays'
    return { text: withMembers(scan, tool, (name) => name !== 'model') ?? '{}' }
  })
}

function itemsWithoutModels(scan: ScannedObject, items: Node): string | undefined {
  // The input of embeddings consists of texts or of thousands of numbers, so checking the first element is
  // enough.
  const [first] = scan.kindOf(items) === 'array' ? scan.elements(items) : []
  if (first === undefined || scan.kindOf(first) !== 'object') return undefined
  return renderArray(scan, items, (item) => {
    const tools = scan.kindOf(item) === 'object' ? scan.memberOf(item, 'tools') : undefined
    const text = tools === undefined ? undefined : toolsWithoutModels(scan, tools)
    return tools === undefined || text === undefined ? 'stays' : { text: withMember(scan, item, tools, text) }
  })
}

/** Members of OpenRouter's `provider` that only restrict which providers may answer, and at which price. */
const RESTRICTING: ReadonlySet<string> = new Set([
  'data_collection',
  'zdr',
  'ignore',
  'require_parameters',
  'quantizations',
  'max_price',
])

/** The member `provider` of a request to OpenRouter, as JSON text. */
export interface ClientProvider {
  readonly whole: string
  /** The part of `provider` with members that are always allowed; undefined if there is none. */
  readonly restricting: string | undefined
}

/** JSON text of the members of `provider` that only restrict; undefined if there are none. */
function restrictingPart(scan: ScannedObject, provider: Node): string | undefined {
  return withMembers(scan, provider, (name) => RESTRICTING.has(name))
}

/** The member `provider` of a request that will be converted; undefined if there is none. */
export function clientProvider(scan: ScannedObject): ClientProvider | undefined {
  const member = scan.span('provider')
  if (!member || scan.kindOf(member.node) !== 'object') return undefined
  return { whole: scan.textOf(member.node), restricting: restrictingPart(scan, member.node) }
}

/**
 * The part of a client's `provider` that a converted request passes to a channel; undefined if there is none.
 * If it is passed completely, its name is removed from `dropped`. `docs/api.md: Other models and prices`.
 */
export function providerFor(
  given: ClientProvider | undefined,
  upstream: Pick<UpstreamSettings, 'allow' | 'base_url'>,
  dropped: Dropped,
): string | undefined {
  if (!given) return undefined
  const isAllowed = upstream.allow.has('provider')
  if (!isAllowed && !isRouter(upstream.base_url)) return undefined
  const sent = isAllowed ? given.whole : given.restricting
  if (sent === given.whole) dropped.delete('provider')
  return sent
}

/** Adds the `provider` member to a converted request. */
export function withProvider(body: Buffer, provider: string | undefined): Buffer {
  if (provider === undefined) return body
  return Buffer.concat([body.subarray(0, -1), Buffer.from(`,"provider":${provider}}`)])
}

/** A client's request in which `model` is the name that a channel uses. */
export interface MappedRequest extends EditedRequest {
  readonly upstreamModel: string
}

/** Replaces `model` by the name that the channel uses, or adds it if the request has none. */
export function withMappedModel(
  scan: ScannedObject,
  model: string,
  channel: UpstreamSettings,
  passThrough: boolean,
): MappedRequest {
  const upstreamModel = channel.model_mapping.get(model) ?? model
  const replace = new Map(
    scan.value('model') === upstreamModel ? [] : [['model', JSON.stringify(upstreamModel)]],
  )
  const isOpen = passThrough || channel.pass_through
  return { ...editRequest(scan, channel, isOpen, { remove: [], replace }), upstreamModel }
}
