import { changedArray, type Fate } from '../../protocols/json/changed-array.ts'
import { edit } from '../../protocols/json/json-edit.ts'
import { scanObject } from '../../protocols/json/json-scan.ts'
import type { Node, ScannedObject } from '../../protocols/json/scanned-object.ts'
import { claudeVersion, isSince } from '../../protocols/model-version.ts'
import type { Adapted } from '../provider.ts'

/** Version of the messages protocol that Bedrock takes in the body. */
const VERSION = 'bedrock-2023-05-31'

/**
 * Beta features that Bedrock knows, or may know (`unconfirmed-betas.ts`): any other is a 400 there. A model
 * without a feature that its client asks for answers with its own 400.
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

/** Members that Bedrock refuses. */
const REFUSED = ['container', 'inference_geo', 'mcp_servers', 'metadata', 'service_tier', 'speed'] as const
/** Members that it takes with a beta feature alone. */
const OF_BETAS: Readonly<Record<string, string>> = {
  context_management: 'context-management-2025-06-27',
  safeguards: 'dangerous-tool-use-2026-09-03',
}
/** Beta feature for tools that wait until they are found. */
const TOOL_SEARCH = 'tool-search-tool-2025-10-19'
/** Names that features have here, where they differ from those of Anthropic's own API. */
const RENAMED: ReadonlyMap<string, string> = new Map([['advanced-tool-use-2025-11-20', TOOL_SEARCH]])

/**
 * A messages request as `invoke` takes it: version and beta features in the body, model and `stream` in the
 * path. What Bedrock, or the model of this name, refuses is left out and named. All other bytes stay.
 */
export function invokeBody(given: Buffer, headers: readonly string[], model: string): Adapted {
  const body = refusesLifetimes(model) ? withoutLifetimes(given) : given
  const scan = scanObject(body)
  const asked = [...betasIn(scan.value('anthropic_beta')), ...betasOf(headers)]
  const named = asked.map((name) => RENAMED.get(name) ?? name)
  if (hasToolSearch(scan)) named.push(TOOL_SEARCH)
  const betas = [...new Set(named.filter((name) => BETAS.has(name) && goesAlong(name, scan, body)))]
  const dropped: string[] = REFUSED.filter((name) => scan.has(name))
  for (const [name, beta] of Object.entries(OF_BETAS))
    if (scan.has(name) && !betas.includes(beta)) dropped.push(name)
  const replace = new Map<string, string>()
  const remove = ['model', 'stream', ...dropped]
  if (body !== given) dropped.push('cache_control.ttl')
  if (!scan.has('anthropic_version')) replace.set('anthropic_version', JSON.stringify(VERSION))
  if (named.some((name) => !betas.includes(name))) dropped.push('anthropic_beta')
  if (betas.length > 0) replace.set('anthropic_beta', JSON.stringify(betas))
  else remove.push('anthropic_beta')
  const tools = takenTools(scan, betas.includes(TOOL_SEARCH))
  if (tools) {
    dropped.push(...tools.dropped)
    if (tools.text !== '[]') replace.set('tools', tools.text)
    // A choice without tools is refused.
    else remove.push('tools', 'tool_choice')
  }
  return { body: edit(body, scan, { remove, replace }), dropped }
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
 * Beta features that no page of AWS confirms for Bedrock, and whether a request uses them. Agents name them
 * in every request, and each call would be a 400 if Bedrock refused one. So they go along only where they are
 * used: without them, such a request would be refused anyway. Copies of Anthropic's pages have
 * `thinking-display-updates` on all platforms and `mid-conversation-tool-changes` on Bedrock; for the others
 * none names it. Makers of clients send all four.
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

/** Whether a beta feature that the client names goes along: an unconfirmed one does where it is used. */
function goesAlong(beta: string, request: ScannedObject, body: Buffer): boolean {
  return UNCONFIRMED.get(beta)?.(request, body) ?? true
}

// A text that only quotes the name lets the feature go along too, as the client asked for it.
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
/** Members of a request, of a message and of a result that hold marked blocks. */
const HOLDERS = ['system', 'messages', 'tools', 'content'] as const

/** Whether a model is known to refuse a lifetime of its cache: those before 4.5 do. */
function refusesLifetimes(model: string): boolean {
  const version = claudeVersion(model)
  return version !== undefined && !isSince(version, 4, 5)
}

/** The body without lifetimes in its cache marks; the same where there are none. All other bytes stay. */
function withoutLifetimes(body: Buffer): Buffer {
  if (!body.includes(`"${LIFETIME}"`)) return body
  const scan = scanObject(body)
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
    pieces.push(edit(bytes, scanObject(bytes), { remove: [LIFETIME], replace: new Map() }))
    at = scan.endOf(mark)
  }
  return marks.length === 0 ? body : Buffer.concat([...pieces, body.subarray(at)])
}

/** Finds the marks with a lifetime, in a list of blocks and in those inside them. */
function collect(scan: ScannedObject, node: Node, marks: Node[]): void {
  if (scan.kindOf(node) === 'array') for (const element of scan.elements(node)) collect(scan, element, marks)
  if (scan.kindOf(node) !== 'object') return
  const mark = scan.memberOf(node, MARK)
  if (mark !== undefined && scan.kindOf(mark) === 'object' && scan.memberOf(mark, LIFETIME) !== undefined)
    marks.push(mark)
  const content = scan.memberOf(node, 'content')
  if (content !== undefined) collect(scan, content, marks)
}

/** Beginnings of the types of tools that Anthropic runs, which Bedrock does not. */
const NOT_RUN = ['web_search', 'web_fetch', 'code_execution'] as const
/** Beginning of the types of tools that find others. */
const SEARCH = 'tool_search_tool'
/** Member of a tool that is found by another. */
const DEFERRED = 'defer_loading'

/** Whether a tool is there that finds others, for which Bedrock wants a beta feature. */
function hasToolSearch(scan: ScannedObject): boolean {
  return toolsIn(scan).some((tool) => typeOf(scan, tool).startsWith(SEARCH))
}

/** Tools without what Bedrock refuses of them, as JSON text; `[]` if none is left. */
interface TakenTools {
  readonly text: string
  readonly dropped: readonly string[]
}

/** The tools that Bedrock takes; undefined where it takes all. `searches`: tools may wait until found. */
function takenTools(scan: ScannedObject, searches: boolean): TakenTools | undefined {
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
