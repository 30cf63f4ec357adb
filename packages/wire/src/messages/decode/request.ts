import { withoutBillingHeader } from '../../billing-header.ts'
import type { DroppedFields } from '../../codec.ts'
import type {
  Conversation,
  Effort,
  MediaPart,
  OpaquePart,
  Part,
  SearchLocation,
  SystemText,
  TextPart,
  Thinking,
  Tool,
  ToolChoice,
  ToolResultPart,
  Turn,
  WebSearch,
} from '../../conversation.ts'
import { hasOtherMembers } from '../../field.ts'
import { refuseField } from '../../field-check.ts'
import { asRecord } from '../../json/record.ts'
import type { Node, ScannedObject } from '../../json/scanned-object.ts'
import { ACTIVE_THINKING } from '../native/request.ts'
import { clientToolAsFunction } from './client-tools.ts'
import { readCacheMark } from '../cache-mark.ts'
import { reportDropped, dropField } from '../dropped-fields.ts'
import { decodeEndUser, STANDARD_TIER } from '../end-user.ts'
import { decodeOutputFormat } from '../output-format.ts'
import { openSignatureEnvelope } from '../../signature-envelope.ts'
import { parseExact } from '../../json/exact-json.ts'
import { ServerSearchReader } from '../blocks.ts'
import { textOfForeignPart } from '../../block-text.ts'
import { DOMAIN_LISTS, FORCED_SEARCH, readSearchDomains } from '../../web-search.ts'
import { statedMaximum } from '../../tool-use.ts'
import { DEFAULT_EFFORT } from '../../thinking.ts'

/** Request fields that the conversion uses. All other fields are dropped and reported. */
const READ: ReadonlySet<string> = new Set([
  'model',
  'max_tokens',
  'messages',
  'system',
  'stream',
  'temperature',
  'top_p',
  'top_k',
  'stop_sequences',
  'tools',
  'tool_choice',
  'thinking',
  'output_config',
  'output_format',
  'metadata',
  'service_tier',
])

/** Value of `thinking.display` with which thoughts have words. */
const SUMMARIZED = 'summarized'

const EFFORTS: ReadonlySet<unknown> = new Set<Effort>(['low', 'medium', 'high', 'xhigh', 'max'])

/** Decodes a checked messages request; `docs/api.md: Messages`. */
export function decodeRequest(scan: ScannedObject, dropped: DroppedFields): Conversation {
  for (const { key, node } of scan.members.values()) {
    if (!READ.has(key) && scan.kindOf(node) !== 'null') dropField(dropped, key)
  }
  // A request with `max_tokens` 0 only fills the prompt cache. Other protocols have no such request.
  if (scan.value('max_tokens') === 0) refuseField('max_tokens', `at least 1 for this model's channel`, '0')
  const { system, turns } = decodeTurns(scan, dropped)
  const thinking = asRecord(scan.value('thinking'))
  return {
    model: scan.value('model') as string,
    stream: scan.value('stream') === true,
    system,
    turns,
    ...decodeTools(scan, dropped),
    maxTokens: numberAt(scan, 'max_tokens'),
    temperature: numberAt(scan, 'temperature'),
    topP: numberAt(scan, 'top_p'),
    topK: numberAt(scan, 'top_k'),
    seed: undefined,
    presencePenalty: undefined,
    frequencyPenalty: undefined,
    stop: (scan.value('stop_sequences') ?? []) as readonly string[],
    thinking: decodeThinking(scan, dropped),
    ...(thinking?.['display'] === SUMMARIZED && { showsThoughts: true }),
    ...(ACTIVE_THINKING.has(thinking?.['type']) && { thinkingReplacesSampling: true }),
    outputFormat: decodeOutputFormat(scan),
    ...decodeEndUser(scan.value('metadata'), dropped),
    ...decodeTier(scan.value('service_tier'), dropped),
    includeUsage: true,
  }
}

/** Decodes the system prompt and the turns. System messages between turns keep their positions. */
function decodeTurns(scan: ScannedObject, dropped: DroppedFields): { system: SystemText[]; turns: Turn[] } {
  const system: SystemText[] = []
  const turns: Turn[] = []
  const top = scan.span('system')
  if (top && scan.kindOf(top.node) !== 'null')
    system.push(...decodeSystem({ scan, node: top.node, path: 'system', dropped }))
  const messages = scan.span('messages')
  for (const [i, message] of (messages ? scan.elements(messages.node) : []).entries()) {
    const path = `messages[${i}].content`
    const role = scan.parse(scan.memberOf(message, 'role') as Node)
    const place = { scan, node: scan.memberOf(message, 'content') as Node, path, dropped }
    if (role === 'system') {
      const at = turns.length === 0 ? undefined : { turn: turns.length, part: 0 }
      system.push(...decodeSystem(place).map((part) => (at ? { ...part, at } : part)))
    } else if (role === 'user' || role === 'assistant')
      turns.push({ role, parts: decodeContent(place, role) })
    else refuseField(`messages[${i}].role`, `'user' or 'assistant'`, 'another role')
  }
  return { system, turns }
}

function decodeThinking(scan: ScannedObject, dropped: DroppedFields): Thinking | undefined {
  const thinking = asRecord(scan.value('thinking'))
  const config = asRecord(scan.value('output_config'))
  const given = config?.['effort'] ?? undefined
  if (given !== undefined && !EFFORTS.has(given))
    refuseField('output_config.effort', `'low', 'medium', 'high', 'xhigh' or 'max'`, 'something else')
  const effort = given as Effort | undefined
  const display = thinking?.['display'] ?? SUMMARIZED
  if (display !== SUMMARIZED) reportDropped(dropped, 'thinking')

  const kind = thinking?.['type']
  const isEffortUsed = kind === 'adaptive' || kind === undefined
  const others = Object.keys(config ?? {}).some((key) => key !== 'effort' && key !== 'format')
  if (others || (effort !== undefined && !isEffortUsed)) reportDropped(dropped, 'output_config')
  switch (kind) {
    case undefined:
      return effort && { kind: 'adaptive', effort }
    case 'disabled':
      return { kind: 'off' }
    case 'adaptive':
      return { kind: 'adaptive', effort }
    case 'enabled': {
      const tokens = thinking?.['budget_tokens']
      return typeof tokens === 'number'
        ? { kind: 'budget', tokens }
        : { kind: 'adaptive', effort: DEFAULT_EFFORT }
    }
    default:
      return refuseField('thinking.type', `'enabled', 'adaptive' or 'disabled'`, 'something else')
  }
}

/** Reads the service tier. `auto` is the default and is ignored. */
function decodeTier(tier: unknown, dropped: DroppedFields): { isStandardTier?: true } {
  if (tier === STANDARD_TIER) return { isStandardTier: true }
  if (typeof tier === 'string' && tier !== 'auto') reportDropped(dropped, 'service_tier')
  return {}
}

function numberAt(scan: ScannedObject, field: string): number | undefined {
  return (scan.value(field) ?? undefined) as number | undefined
}

type Offer = Pick<Conversation, 'tools' | 'webSearch' | 'toolChoice' | 'parallelTools'>

const WEB_SEARCH = /^web_search_\d+$/
/** Maximum number of searches if the request states none: the number for the search context size `medium`. */
const DEFAULT_SEARCHES = 5
const READ_FIELDS: ReadonlySet<string> = new Set([
  'type',
  'name',
  'description',
  'input_schema',
  'strict',
  'cache_control',
])
const SEARCH_FIELDS: ReadonlySet<string> = new Set([
  'type',
  'name',
  'max_uses',
  'user_location',
  ...DOMAIN_LISTS,
])
const PLACES = ['city', 'country', 'region', 'timezone'] as const

/**
 * Decodes the tools and the tool choice. Of the tools that a provider runs, only web search exists in other
 * protocols. If no tool is left, the choice is dropped.
 */
function decodeTools(scan: ScannedObject, dropped: DroppedFields): Offer {
  const tools: Tool[] = []
  let webSearch: Offer['webSearch']
  const list = scan.span('tools')
  for (const [i, node] of (list?.count ? scan.elements(list.node) : []).entries()) {
    const tool = asRecord(scan.parse(node)) ?? {}
    const type = tool['type'] ?? 'custom'
    const input = clientToolAsFunction(type)
    if (input || type === 'custom')
      tools.push({ ...decodeTool(scan, node, tool, `tools[${i}]`, dropped), ...input })
    else if (typeof type === 'string' && WEB_SEARCH.test(type)) webSearch = decodeSearch(tool, dropped)
    else reportDropped(dropped, 'tools.server')
  }
  const choice = asRecord(scan.value('tool_choice'))
  const isNamed = choice?.['type'] === 'tool'
  const isSearch = webSearch && isNamed && choice['name'] === FORCED_SEARCH.name
  if (tools.length === 0 && (!webSearch || (isNamed && !isSearch))) {
    if (choice && choice['type'] !== 'none') reportDropped(dropped, 'tool_choice')
    return { tools, webSearch, toolChoice: undefined, parallelTools: undefined }
  }
  const disable = choice?.['disable_parallel_tool_use']
  return {
    tools,
    webSearch: webSearch && (isSearch ? { ...webSearch, isForced: true } : webSearch),
    toolChoice: choice && !isSearch ? decodeChoice(choice) : undefined,
    parallelTools: typeof disable === 'boolean' ? !disable : undefined,
  }
}

function decodeTool(
  scan: ScannedObject,
  node: Node,
  tool: Readonly<Record<string, unknown>>,
  path: string,
  dropped: DroppedFields,
): Tool {
  if (hasOtherMembers(tool, READ_FIELDS)) reportDropped(dropped, 'tools.unknown')
  const schema = scan.memberOf(node, 'input_schema')
  const { description, strict } = tool
  return {
    name: tool['name'] as string,
    description: typeof description === 'string' ? description : undefined,
    schema: schema === undefined ? undefined : scan.textOf(schema),
    strict: typeof strict === 'boolean' ? strict : undefined,
    ...readCacheMark(tool, path),
  }
}

function decodeSearch(tool: Readonly<Record<string, unknown>>, dropped: DroppedFields): WebSearch {
  if (hasOtherMembers(tool, SEARCH_FIELDS)) reportDropped(dropped, 'web_search')
  const place = asRecord(tool['user_location'])
  const location: SearchLocation = Object.fromEntries(
    PLACES.map((name) => [name, place?.[name]]).filter(([, value]) => typeof value === 'string'),
  )
  return {
    maxUses: statedMaximum(tool['max_uses']) ?? DEFAULT_SEARCHES,
    listsPages: true,
    ...readSearchDomains(tool),
    ...(Object.keys(location).length > 0 && { location }),
  }
}

function decodeChoice(choice: Readonly<Record<string, unknown>>): ToolChoice {
  switch (choice['type']) {
    case 'auto':
    case 'any':
    case 'none':
      return { kind: choice['type'] }
    case 'tool':
      return { kind: 'tool', name: choice['name'] as string }
    default:
      return refuseField('tool_choice.type', `'auto', 'any', 'tool' or 'none'`, 'something else')
  }
}

type Block = Readonly<Record<string, unknown>>

/** A block of a request, its path for error messages, and the list of dropped fields. */
interface Place {
  readonly scan: ScannedObject
  readonly node: Node
  readonly path: string
  readonly dropped: DroppedFields
}

/**
 * Decodes the content of a message; a string becomes one text. Blocks that only this protocol has become
 * opaque parts. Throws `invalid_request` with the path of a malformed block, or of a block that messages of
 * this role may not have.
 */
function decodeContent(place: Place, role: Turn['role']): Part[] {
  const { scan, node, path } = place
  if (scan.kindOf(node) === 'string') return [{ kind: 'text', text: scan.parse(node) as string }]
  const searches = new ServerSearchReader()
  return scan.elements(node).flatMap((element, i) => {
    const at: Place = { ...place, node: element, path: `${path}[${i}]` }
    const block = blockAt(at)
    const owner = OWNERS.get(block['type'])
    if (owner !== undefined && owner !== role)
      refuseField(`${at.path}.type`, `a block for a message of role '${role}'`, `a block for '${owner}'`)
    const search = searches.note(block)
    return [...decodeBlock(block, at), ...(search ? [search] : [])]
  })
}

/** Decodes system blocks and the content of system messages, which must be texts. */
function decodeSystem(place: Place): TextPart[] {
  const parts = decodeContent(place, 'user')
  const texts = parts.flatMap((part, i) => {
    if (part.kind === 'text') return [part]
    return part.kind === 'opaque' || part.kind === 'search'
      ? []
      : refuseField(`${place.path}[${i}].type`, `'text'`, 'a block that cannot be part of a system prompt')
  })
  return withoutBillingHeader(texts, place.dropped)
}

/** Types of blocks that only messages of one role may have. */
const OWNERS: ReadonlyMap<unknown, Turn['role']> = new Map([
  ['tool_use', 'assistant'],
  ['thinking', 'assistant'],
  ['tool_result', 'user'],
])

function decodeBlock(block: Block, place: Place): Part[] {
  const { scan, node, path } = place
  switch (block['type']) {
    case 'tool_use': {
      const input = scan.memberOf(node, 'input')
      return [
        {
          kind: 'tool-call',
          id: text(block, 'id', path),
          name: text(block, 'name', path),
          input: input === undefined ? '' : scan.textOf(input),
          ...readCacheMark(block, path),
        },
      ]
    }
    case 'tool_result':
      return [decodeResult(block, place)]
    case 'thinking': {
      const signature = block['signature']
      const thought = text(block, 'thinking', path)
      if (typeof signature !== 'string' || signature === '') return [{ kind: 'thinking', text: thought }]
      const enclosed = openSignatureEnvelope(signature, 'messages')
      return ['opaque' in enclosed ? enclosed.opaque : { kind: 'thinking', text: thought, ...enclosed }]
    }
    default:
      return decodePlain(block, place)
  }
}

/** Decodes blocks that are allowed in a message and also in a tool result. */
function decodePlain(block: Block, place: Place): (TextPart | MediaPart | OpaquePart)[] {
  const { scan, node, path, dropped } = place
  switch (block['type']) {
    case 'text':
      if (Array.isArray(block['citations'])) reportDropped(dropped, 'citations')
      return [{ kind: 'text', text: text(block, 'text', path), ...readCacheMark(block, path) }]
    case 'image':
      return [decodeImage(block, path)]
    case 'document':
      if (asRecord(block['citations'])?.['enabled'] === true) reportDropped(dropped, 'citations')
      return [...decodeDocument(block, path)]
    default: {
      const foreign = textOfForeignPart(block['type'], block)
      if (foreign !== undefined) return [{ kind: 'text', text: foreign, ...readCacheMark(block, path) }]
      return [{ kind: 'opaque', protocol: 'messages', value: parseExact(scan.textOf(node)) }]
    }
  }
}

function decodeResult(block: Block, place: Place): ToolResultPart {
  const { scan, node, path } = place
  const content = scan.memberOf(node, 'content')
  return {
    kind: 'tool-result',
    callId: text(block, 'tool_use_id', path),
    parts:
      content === undefined ? [] : decodeResultContent({ ...place, node: content, path: `${path}.content` }),
    isError: block['is_error'] === true,
    ...readCacheMark(block, path),
  }
}

function decodeResultContent(place: Place): ToolResultPart['parts'] {
  const { scan, node, path } = place
  const kind = scan.kindOf(node)
  if (kind === 'string') return [{ kind: 'text', text: scan.parse(node) as string }]
  if (kind === 'null') return []
  if (kind !== 'array') return [{ kind: 'text', text: scan.textOf(node) }]
  return scan.elements(node).flatMap((element, i) => {
    const at = { ...place, node: element, path: `${path}[${i}]` }
    return decodePlain(blockAt(at), at)
  })
}

function blockAt({ scan, node, path }: Place): Block {
  return asRecord(scan.parse(node)) ?? refuseField(path, 'an object', 'something else')
}

function text(holder: Block, key: string, path: string): string {
  const value = holder[key]
  return typeof value === 'string' ? value : refuseField(`${path}.${key}`, 'a string', 'something else')
}

const UNKNOWN_TYPE = 'application/octet-stream'

/**
 * Decodes an `image` block. Throws `invalid_request` if it is malformed, or if it has a file id, which is
 * valid only at the provider that issued it.
 */
function decodeImage(block: Block, path: string): MediaPart {
  const source = sourceOf(block, path)
  const cache = readCacheMark(block, path)
  switch (source['type']) {
    case 'base64':
      return { kind: 'media', source: inline(source, `${path}.source`), ...cache }
    case 'url':
      return {
        kind: 'media',
        source: { kind: 'url', url: text(source, 'url', `${path}.source`), mediaType: 'image/*' },
        ...cache,
      }
    default:
      return refuseField(
        `${path}.source.type`,
        `'base64' or 'url'`,
        'a source that only its provider can read',
      )
  }
}

/**
 * Decodes a `document` block. A file becomes media with its title as name, after a text of its context; a text
 * becomes a text part that begins with its title and context; a list of blocks becomes a text of these and the
 * parts of the blocks. A cache mark of the document is moved to the last part.
 */
function decodeDocument(block: Block, path: string): readonly (TextPart | MediaPart)[] {
  const source = sourceOf(block, path)
  const cache = readCacheMark(block, path)
  const at = `${path}.source`
  const title = typeof block['title'] === 'string' ? block['title'] : undefined
  const named = title === undefined ? {} : { name: title }
  const { context } = block
  switch (source['type']) {
    case 'base64':
      return [...textAbout(context), { kind: 'media', source: inline(source, at), ...named, ...cache }]
    case 'url': {
      const url = text(source, 'url', at)
      return [
        ...textAbout(context),
        { kind: 'media', source: { kind: 'url', url, mediaType: 'application/pdf' }, ...named, ...cache },
      ]
    }
    case 'text': {
      const pieces = [title, context, text(source, 'data', at)]
      return [{ kind: 'text', text: pieces.filter((p) => typeof p === 'string').join('\n\n'), ...cache }]
    }
    case 'content':
      return [
        ...textAbout(title, context),
        ...decodeContentSource(source['content'], `${at}.content`).map((part, i, all) =>
          i === all.length - 1 ? { ...part, ...cache } : part,
        ),
      ]
    default:
      return refuseField(
        `${at}.type`,
        `'base64', 'url', 'text' or 'content'`,
        'a source that only its provider can read',
      )
  }
}

/** A text of what is said about a document; nothing if that is empty. */
function textAbout(...pieces: readonly unknown[]): TextPart[] {
  const said = pieces.filter((piece) => typeof piece === 'string' && piece !== '').join('\n\n')
  return said === '' ? [] : [{ kind: 'text', text: said }]
}

function decodeContentSource(content: unknown, path: string): (TextPart | MediaPart)[] {
  if (typeof content === 'string') return [{ kind: 'text', text: content }]
  if (!Array.isArray(content)) return refuseField(path, 'a string or an array of blocks', 'something else')
  return content.map((item, i) => {
    const block = asRecord(item)
    const at = `${path}[${i}]`
    if (block?.['type'] === 'image') return decodeImage(block, at)
    if (block?.['type'] !== 'text') return refuseField(`${at}.type`, `'text' or 'image'`, 'something else')
    return { kind: 'text', text: text(block, 'text', at), ...readCacheMark(block, at) }
  })
}

function inline(source: Block, path: string): MediaPart['source'] {
  const type = source['media_type']
  return {
    kind: 'inline',
    mediaType: typeof type === 'string' && type !== '' ? type : UNKNOWN_TYPE,
    data: text(source, 'data', path),
  }
}

function sourceOf(block: Block, path: string): Block {
  return asRecord(block['source']) ?? refuseField(`${path}.source`, 'an object', 'something else')
}
