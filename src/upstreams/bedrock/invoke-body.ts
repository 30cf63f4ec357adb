import { renderArray, applyEdits, type ElementChange } from '@sluice/wire/json/json-edit'
import { RESPONSE_LIMITS, scanObject } from '@sluice/wire/json/json-scan'
import type { Node, ScannedObject } from '@sluice/wire/json/scanned-object'
import { claudeVersion, isSince } from '@sluice/wire/model-capabilities'
import type { AdaptedBody } from '../provider.ts'
import { bedrockTierHeader } from '../tier-headers.ts'

/** Version of the messages protocol that Bedrock requires in the body. */
const VERSION = 'bedrock-2023-05-31'

/**
 * Beta features that Bedrock supports or may support (see `UNCONFIRMED`). Bedrock responds with 400 to any
 * other, and to a feature that the model does not have.
 */
const BETAS: ReadonlySet<string> = new Set([
  'compact-2026-01-12',
  'computer-use-2024-10-22',
  'computer-use-2025-01-24',
  'computer-use-2025-11-24',
  'context-1m-2025-08-07',
  'context-management-2025-06-27',
  'dangerous-tool-use-2026-09-03',
  'dev-full-thinking-2025-05-14',
  'effort-2025-11-24',
  'fine-grained-tool-streaming-2025-05-14',
  'interleaved-thinking-2025-05-14',
  'mid-conversation-output-config-2026-07-01',
  'mid-conversation-tool-changes-2026-07-01',
  'output-128k-2025-02-19',
  'thinking-binding-controls-2026-08-01',
  'thinking-display-updates-2026-08-18',
  'token-efficient-tools-2025-02-19',
  'tool-examples-2025-10-29',
  'tool-search-tool-2025-10-19',
])

/** Top-level JSON members of a request that Bedrock refuses. */
const REFUSED = ['container', 'inference_geo', 'mcp_servers', 'metadata', 'speed'] as const
/** JSON member that names the service tier, for which Bedrock has a header instead. */
const TIER = 'service_tier'
/** JSON members that Bedrock accepts only together with a beta feature, with the name of that feature. */
const OF_BETAS: Readonly<Record<string, string>> = {
  context_management: 'context-management-2025-06-27',
  safeguards: 'dangerous-tool-use-2026-09-03',
}
/** Beta feature of tool searches, which load the tools that they find. */
const TOOL_SEARCH = 'tool-search-tool-2025-10-19'
/** Bedrock's names of beta features that differ from Anthropic's own. */
const RENAMED: ReadonlyMap<string, string> = new Map([['advanced-tool-use-2025-11-20', TOOL_SEARCH]])

/**
 * Converts a messages request for `invoke`: version and beta features go into the body, model and `stream`
 * into the URL, the service tier into a header. What Bedrock or this model refuses is removed and listed in
 * `dropped`. All other bytes stay.
 */
export function invokeBody(given: Buffer, headers: readonly string[], model: string): AdaptedBody {
  const body = refusesLifetimes(model) ? withoutLifetimes(given) : given
  const scan = scanObject(body, RESPONSE_LIMITS)
  const requested = [...betasIn(scan.value('anthropic_beta')), ...betasOf(headers)]
  const named = requested.map((name) => RENAMED.get(name) ?? name)
  if (hasToolSearch(scan)) named.push(TOOL_SEARCH)
  const betas = [...new Set(named.filter((name) => BETAS.has(name) && goesAlong(name, scan, body)))]
  const dropped: string[] = REFUSED.filter((name) => scan.has(name))
  for (const [name, beta] of Object.entries(OF_BETAS))
    if (scan.has(name) && !betas.includes(beta)) dropped.push(name)
  const replace = new Map<string, string>()
  const remove = ['model', 'stream', TIER, ...dropped]
  const tier = scan.has(TIER) ? bedrockTierHeader(scan.value(TIER)) : undefined
  if (tier?.isLacking) dropped.push(TIER)
  if (body !== given) dropped.push('cache_control.ttl')
  if (!scan.has('anthropic_version')) replace.set('anthropic_version', JSON.stringify(VERSION))
  if (named.some((name) => !betas.includes(name))) dropped.push('anthropic_beta')
  if (betas.length > 0) replace.set('anthropic_beta', JSON.stringify(betas))
  else remove.push('anthropic_beta')
  const tools = takenTools(scan, betas.includes(TOOL_SEARCH))
  if (tools) {
    dropped.push(...tools.dropped)
    if (tools.text !== '[]') replace.set('tools', tools.text)
    // If no tools are left, Bedrock also refuses `tool_choice`.
    else remove.push('tools', 'tool_choice')
  }
  return {
    body: applyEdits(body, scan, { remove, replace }),
    dropped,
    ...(tier && tier.header.length > 0 && { headers: [...headers, ...tier.header] }),
  }
}

function betasIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((name) => typeof name === 'string') : []
}

function betasOf(headers: readonly string[]): string[] {
  const at = headers.indexOf('anthropic-beta')
  const names = at === -1 ? [] : (headers[at + 1] ?? '').split(',').map((name) => name.trim())
  return names.filter((name) => name !== '')
}

/**
 * Beta features that AWS does not document for Bedrock, each with a function that tests whether a request
 * uses it. Agents name these features in every request; if Bedrock refused a feature, every call would fail
 * with 400. So a feature is sent only if the request uses it, because without the feature such a request
 * would be refused anyway. Copies of Anthropic's documentation list `thinking-display-updates` for all
 * platforms and `mid-conversation-tool-changes` for Bedrock; the others are not documented. Authors of
 * clients send all four.
 */
const UNCONFIRMED: ReadonlyMap<string, (request: ScannedObject, body: Buffer) => boolean> = new Map([
  ['dangerous-tool-use-2026-09-03', (request) => request.has('safeguards')],
  ['mid-conversation-output-config-2026-07-01', (request, body) => says(request, body, '"output_config"')],
  [
    'mid-conversation-tool-changes-2026-07-01',
    (request, body) => says(request, body, '"tool_addition"') || says(request, body, '"tool_removal"'),
  ],
  ['thinking-display-updates-2026-08-18', (request) => showsUpdates(request.value('thinking'))],
])

/**
 * Whether a beta feature that the client names is sent to Bedrock. If it is not known whether Bedrock
 * supports the feature, it is sent only if the request uses it.
 */
function goesAlong(beta: string, request: ScannedObject, body: Buffer): boolean {
  return UNCONFIRMED.get(beta)?.(request, body) ?? true
}

// Whether the messages contain the name of the feature. If a message just quotes the name, the feature is
// sent too, which is harmless, because the client has named it.
function says(request: ScannedObject, body: Buffer, name: string): boolean {
  const messages = request.span('messages')
  if (!messages) return false
  return body.subarray(messages.start, messages.end).includes(name)
}

function showsUpdates(thinking: unknown): boolean {
  return typeof thinking === 'object' && thinking !== null && Reflect.get(thinking, 'display') === 'updates'
}

const MARK = 'cache_control'
const LIFETIME = 'ttl'
/**
 * JSON members of a request, message or tool result that contain blocks, which may have a `cache_control`.
 */
const HOLDERS = ['system', 'messages', 'tools', 'content'] as const

/** Whether a model refuses a cache lifetime (`ttl`), as Claude models before 4.5 do. */
function refusesLifetimes(model: string): boolean {
  const version = claudeVersion(model)
  return version !== undefined && !isSince(version, 4, 5)
}

/**
 * Removes the lifetime (`ttl`) from every `cache_control`. Returns the same body if no `cache_control` has
 * one. All other bytes stay.
 */
function withoutLifetimes(body: Buffer): Buffer {
  if (!body.includes(`"${LIFETIME}"`)) return body
  const scan = scanObject(body, RESPONSE_LIMITS)
  const marks: Node[] = []
  for (const name of HOLDERS) {
    const member = scan.span(name)
    if (member) collect(scan, member.node, marks)
  }
  const pieces: Buffer[] = []
  let at = 0
  for (const mark of marks.sort((a, b) => scan.startOf(a) - scan.startOf(b))) {
    const bytes = body.subarray(scan.startOf(mark), scan.endOf(mark))
    pieces.push(body.subarray(at, scan.startOf(mark)))
    pieces.push(
      applyEdits(bytes, scanObject(bytes, RESPONSE_LIMITS), { remove: [LIFETIME], replace: new Map() }),
    )
    at = scan.endOf(mark)
  }
  return marks.length === 0 ? body : Buffer.concat([...pieces, body.subarray(at)])
}

/** Collects every `cache_control` with a lifetime, in blocks and in the blocks inside them. */
function collect(scan: ScannedObject, node: Node, marks: Node[]): void {
  if (scan.kindOf(node) === 'array') for (const element of scan.elements(node)) collect(scan, element, marks)
  if (scan.kindOf(node) !== 'object') return
  const mark = scan.memberOf(node, MARK)
  if (mark !== undefined && scan.kindOf(mark) === 'object' && scan.memberOf(mark, LIFETIME) !== undefined)
    marks.push(mark)
  const content = scan.memberOf(node, 'content')
  if (content !== undefined) collect(scan, content, marks)
}

/** Prefixes of the types of tools that Anthropic itself runs, but Bedrock does not. */
const NOT_RUN = ['web_search', 'web_fetch', 'code_execution'] as const
/** Prefix of the types of tools that search for other tools. */
const SEARCH = 'tool_search_tool'
/** JSON member that marks a tool to be loaded only if a tool search finds it. */
const DEFERRED = 'defer_loading'

/** Whether the request has a tool search, for which Bedrock requires a beta feature. */
function hasToolSearch(scan: ScannedObject): boolean {
  return toolsIn(scan).some((tool) => typeOf(scan, tool).startsWith(SEARCH))
}

/**
 * The tools as JSON text, without what Bedrock refuses; `[]` if none is left. `dropped` names what was
 * removed.
 */
interface TakenTools {
  readonly text: string
  readonly dropped: readonly string[]
}

/**
 * The tools that Bedrock accepts; undefined if it accepts all of them unchanged. `searches`: whether Bedrock
 * allows a tool search to load tools.
 */
function takenTools(scan: ScannedObject, searches: boolean): TakenTools | undefined {
  const tools = scan.span('tools')
  if (!tools || scan.kind('tools') !== 'array') return undefined
  const refused = searches ? ['eager_input_streaming'] : ['eager_input_streaming', DEFERRED]
  const dropped = new Set<string>()
  const text = renderArray(scan, tools.node, (tool): ElementChange => {
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
    return {
      text: applyEdits(bytes, scanObject(bytes, RESPONSE_LIMITS), { remove, replace: new Map() }).toString(),
    }
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
