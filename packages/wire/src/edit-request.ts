import {
  isOpenRouter,
  reroutingField,
  reroutingMemberName,
  type UpstreamSettings,
} from './upstream-settings.ts'
import {
  renderArray,
  applyEdits,
  type MemberEdits,
  renderObject,
  replaceMemberValue,
  keepMembers,
} from './json/json-edit.ts'
import { RESPONSE_LIMITS, scanObject } from './json/json-scan.ts'
import { asRecord } from './json/record.ts'
import { carriesModel } from './model-tools.ts'
import type { Node, ScannedObject } from './json/scanned-object.ts'
import type { DroppedFields } from './codec.ts'

/** A request that is sent to a channel in the client's own protocol. */
export interface EditedRequest {
  /** The body. It is the client's own Buffer if nothing had to be changed. */
  readonly body: Buffer
  /** Names of the fields that were removed because they may cause a different model or price. */
  readonly dropped: readonly string[]
}

/** Matches Google's hosts. Their chat endpoint accepts thinking settings only in `extra_body`. */
const GOOGLE_HOST = /(?:^|\.)googleapis\.com$/

const NOTHING: readonly string[] = []

/**
 * Applies changes to a request, and removes members that may cause a different model or price, unless the
 * channel allows them. `isOpen` is pass-through mode, in which nothing is removed. `docs/api.md: Other models
 * and prices`.
 */
export function editRequest(
  scan: ScannedObject,
  channel: UpstreamSettings,
  isOpen: boolean,
  { remove, replace }: MemberEdits,
): EditedRequest {
  const removal = isOpen ? undefined : rerouting(scan, channel, replace)
  if (!removal) return { body: applyEdits(scan.bytes, scan, { remove, replace }), dropped: NOTHING }
  const edits = {
    remove: [...remove, ...removal.remove],
    replace: new Map([...replace, ...removal.replace]),
  }
  return { body: applyEdits(scan.bytes, scan, edits), dropped: removal.dropped }
}

/**
 * Returns the names of the top-level members of a request by which the provider may use a different model or
 * price.
 */
export function reroutingMemberNames(scan: ScannedObject): string[] {
  return [...scan.members.keys()].flatMap((member) => reroutingMemberName(member) ?? [])
}

/** The members to remove or replace, and the names that are reported as dropped. */
interface Removal extends MemberEdits {
  readonly remove: string[]
  readonly replace: Map<string, string>
  readonly dropped: string[]
}

/**
 * Finds the members that may cause a different model or price. `replaced` contains the members that are sent
 * with another text than the client's.
 */
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
      if (text !== undefined) {
        const { remove, replace } = changed('tools.model')
        if (key === 'tools') {
          remove.push(...invalidWithout(scan, node, text))
          const messages = scan.span('messages')
          const turns = messages && withoutAdvice(scan, messages.node, replaced.get('messages'))
          if (turns !== undefined) changed('messages.advisor').replace.set('messages', turns)
        }
        if (!remove.includes(key) || other !== undefined) replace.set(key, text)
      }
    }
    const field = reroutingField(key)
    if (!field || allow.has(field)) continue
    const kept = partToKeep(scan, key, node, baseUrl)
    if (kept === scan.textOf(node)) continue
    const { remove, replace } = changed(reroutingMemberName(key) ?? field)
    if (kept === undefined) remove.push(key)
    else replace.set(key, kept)
  }
  return removal
}

/** Members that are invalid if a request has no tools. */
const OF_TOOLS = ['tools', 'tool_choice', 'parallel_tool_calls'] as const

/** The members of a request that become invalid if `text` is all that is left of its tools. */
function invalidWithout(scan: ScannedObject, tools: Node, text: string): readonly string[] {
  if (text === '[]') return OF_TOOLS.filter((name) => scan.has(name))
  const choice = asRecord(scan.value('tool_choice'))
  const isGone = scan
    .elements(tools)
    .filter((tool) => scan.kindOf(tool) === 'object' && asksModel(scan, tool))
    .map((tool) => asRecord(scan.parse(tool)) ?? {})
    .some(
      ({ type, name }) =>
        choice && (choice['type'] === type || (name !== undefined && choice['name'] === name)),
    )
  return isGone ? ['tool_choice'] : NOTHING
}

/**
 * Returns the messages of a request whose advisor was removed without the calls and the results of the advisor, because
 * Anthropic refuses results of a tool that is not offered; undefined if there are none. Messages that have nothing else
 * go too. `given` is the text by which the messages will be replaced.
 * @see https://platform.claude.com/docs/en/agents-and-tools/tool-use/advisor-tool
 */
function withoutAdvice(scan: ScannedObject, messages: Node, given: string | undefined): string | undefined {
  return given === undefined ? turnsWithoutAdvice(scan, messages) : changedText(given, turnsWithoutAdvice)
}

function turnsWithoutAdvice(scan: ScannedObject, messages: Node): string | undefined {
  if (scan.kindOf(messages) !== 'array') return undefined
  return renderArray(scan, messages, (message) => {
    const content = scan.kindOf(message) === 'object' ? scan.memberOf(message, 'content') : undefined
    if (content === undefined || scan.kindOf(content) !== 'array') return 'stays'
    const text = renderArray(scan, content, (block) => (isAdvice(scan, block) ? 'goes' : 'stays'))
    if (text === undefined) return 'stays'
    return text === '[]' ? 'goes' : { text: replaceMemberValue(scan, message, content, text) }
  })
}

function isAdvice(scan: ScannedObject, block: Node): boolean {
  if (scan.kindOf(block) !== 'object') return false
  const valueOf = (name: string): unknown => {
    const value = scan.memberOf(block, name)
    return value === undefined || scan.kindOf(value) !== 'string' ? undefined : scan.parse(value)
  }
  const type = valueOf('type')
  return type === 'advisor_tool_result' || (type === 'server_tool_use' && valueOf('name') === 'advisor')
}

/**
 * Whether thinking settings in `extra_body` are sent to this upstream: to Google, or if the channel allows
 * `extra_body`.
 */
export function passesGoogleThinking({ allow, base_url: baseUrl }: UpstreamSettings): boolean {
  return allow.has('extra_body') || GOOGLE_HOST.test(new URL(baseUrl).hostname)
}

/**
 * JSON text of the part of a member that is sent even if the channel does not allow the member; undefined if
 * there is none.
 */
function partToKeep(scan: ScannedObject, key: string, node: Node, baseUrl: string): string | undefined {
  if (scan.kindOf(node) !== 'object') return undefined
  if (key === 'provider') return restrictingPart(scan, node)
  if (key !== 'extra_body' || !GOOGLE_HOST.test(new URL(baseUrl).hostname)) return undefined
  const google = scan.memberOf(node, 'google')
  if (google === undefined || scan.kindOf(google) !== 'object') return undefined
  const settings = keepMembers(scan, google, (name) => name === 'thinking_config')
  if (settings === undefined) return undefined
  const isAll = settings === scan.textOf(google) && scan.values(node).length === 1
  return isAll ? scan.textOf(node) : renderObject([['google', settings]])
}

/**
 * Functions that remove names of models from tools, by the request member that contains the tools, or items
 * with tools.
 */
const WITHOUT_MODELS: ReadonlyMap<string, (scan: ScannedObject, list: Node) => string | undefined> = new Map([
  ['tools', toolsWithoutModels],
  ['input', itemsWithoutModels],
])

/** Applies a function to the JSON text by which a member of the request will be replaced. */
function changedText(
  text: string,
  change: (scan: ScannedObject, list: Node) => string | undefined,
): string | undefined {
  const scan = scanObject(Buffer.from(`{"_":${text}}`), RESPONSE_LIMITS)
  const list = scan.span('_')
  return list && change(scan, list.node)
}

/**
 * Returns the tools without those for which the provider asks another model, and without the names of models
 * in the others; undefined if there are none of both.
 */
function toolsWithoutModels(scan: ScannedObject, tools: Node): string | undefined {
  if (scan.kindOf(tools) !== 'array') return undefined
  return renderArray(scan, tools, (tool) => {
    if (scan.kindOf(tool) !== 'object') return 'stays'
    if (asksModel(scan, tool)) return 'goes'
    if (scan.memberOf(tool, 'model') === undefined) return 'stays'
    return { text: keepMembers(scan, tool, (name) => name !== 'model') ?? '{}' }
  })
}

// Functions are not parsed, because their schemas are a large part of the requests of coding agents.
function asksModel(scan: ScannedObject, tool: Node): boolean {
  const type = scan.memberOf(tool, 'type')
  if (type === undefined || CLIENT_TYPES.has(scan.parse(type))) return false
  return carriesModel(asRecord(scan.parse(tool)) ?? {})
}

const CLIENT_TYPES: ReadonlySet<unknown> = new Set(['function', 'custom'])

function itemsWithoutModels(scan: ScannedObject, items: Node): string | undefined {
  // For embeddings, the input is a list of texts or of thousands of numbers, so only the first element is
  // examined.
  const [first] = scan.kindOf(items) === 'array' ? scan.elements(items) : []
  if (first === undefined || scan.kindOf(first) !== 'object') return undefined
  return renderArray(scan, items, (item) => {
    const tools = scan.kindOf(item) === 'object' ? scan.memberOf(item, 'tools') : undefined
    const text = tools === undefined ? undefined : toolsWithoutModels(scan, tools)
    return tools === undefined || text === undefined
      ? 'stays'
      : { text: replaceMemberValue(scan, item, tools, text) }
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
export interface ProviderMember {
  readonly whole: string
  /**
   * The members of `provider` that are sent even if the channel does not allow `provider`; undefined if there
   * are none.
   */
  readonly restricting: string | undefined
}

/**
 * The members of `provider` that only restrict which providers may be used, as JSON text. Undefined if there
 * are none.
 */
function restrictingPart(scan: ScannedObject, provider: Node): string | undefined {
  return keepMembers(scan, provider, (name) => RESTRICTING.has(name))
}

/** Reads the member `provider` of a request that is to be converted; undefined if there is none. */
export function readProviderMember(scan: ScannedObject): ProviderMember | undefined {
  const member = scan.span('provider')
  if (!member || scan.kindOf(member.node) !== 'object') return undefined
  return { whole: scan.textOf(member.node), restricting: restrictingPart(scan, member.node) }
}

/**
 * Returns the part of a client's `provider` member that is sent to a channel in a converted request;
 * undefined if there is none. If the whole member is sent, its name is removed from the dropped fields.
 * `docs/api.md: Other models and prices`.
 */
export function providerMemberFor(
  given: ProviderMember | undefined,
  upstream: Pick<UpstreamSettings, 'allow' | 'base_url'>,
  dropped: DroppedFields,
): string | undefined {
  if (!given) return undefined
  const isAllowed = upstream.allow.has('provider')
  if (!isAllowed && !isOpenRouter(upstream.base_url)) return undefined
  const sent = isAllowed ? given.whole : given.restricting
  if (sent === given.whole) dropped.delete('provider')
  return sent
}

/** Adds the `provider` member to a converted request. */
export function withProviderMember(body: Buffer, provider: string | undefined): Buffer {
  if (provider === undefined) return body
  return Buffer.concat([body.subarray(0, -1), Buffer.from(`,"provider":${provider}}`)])
}

/** A client's request in which the model has the name that the channel uses for it. */
export interface MappedRequest extends EditedRequest {
  readonly upstreamModel: string
}

/** Replaces `model` by the channel's name for it, or adds it if the request names no model. */
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
