import { scanObject } from '../json/json-scan.ts'
import {
  DOCUMENT_TOKENS,
  featureTokens,
  IMAGE_TOKENS,
  type MediaTokens,
  MESSAGE_TOKENS,
  type PromptBounds,
  type PromptText,
  REQUEST_TOKENS,
  respondsInMedia,
  TOOLS_TOKENS,
  TYPICAL_MESSAGE_TOKENS,
  TYPICAL_REQUEST_TOKENS,
} from '../prompt-tokens.ts'
import type { Node, ScannedObject } from '../json/scanned-object.ts'

const MEDIA: ReadonlyMap<string, MediaTokens> = new Map([
  ['image', IMAGE_TOKENS],
  ['document', DOCUMENT_TOKENS],
])
/** Sources that are text, and wholly in the body. */
const TEXT_SOURCES: ReadonlySet<string> = new Set(['text', 'content'])

/** Fields of which the model reads no more than their own bytes. */
const PLAIN_FIELDS: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'system',
  'max_tokens',
  'stream',
  'stop_sequences',
  'temperature',
  'top_p',
  'top_k',
  'metadata',
  'cache_control',
  'service_tier',
  'inference_geo',
  'speed',
])

/** Tokens of the instructions for one of the provider's tools: 200 to 750, and more for computer use. */
const SERVER_TOOL_TOKENS = 1500

/**
 * Bounds the tokens of a checked request's prompt without a tokenizer: no token is less than a byte, so the
 * bytes of the body bound its text; media count by their largest content. Input that a provider's own tools
 * add (pages of a search) is unknown beforehand and not included.
 */
export function promptBounds(scan: ScannedObject): PromptBounds {
  const model = String(scan.value('model'))
  let hasMedia = respondsInMedia(model)
  let tokens = scan.bytes.length + REQUEST_TOKENS + featureTokens(scan, PLAIN_FIELDS)
  tokens += (scan.span('messages')?.count ?? 0) * MESSAGE_TOKENS
  const tools = elementsOf(scan, scan.span('tools')?.node)
  if (tools.length > 0) tokens += TOOLS_TOKENS
  tokens += SERVER_TOOL_TOKENS * tools.filter((tool) => isServerTool(scan, tool)).length
  for (const message of elementsOf(scan, scan.span('messages')?.node)) {
    const addMedia = (block: Node, type: string): void => {
      const media = mediaOf(scan, block, type)
      const bytes = scan.endOf(block) - scan.startOf(block)
      if (media) {
        hasMedia = true
        tokens += media.max(bytes, model) - bytes
        // A document's content may contain images.
      } else if (type === 'document') eachBlock(scan, sourceContent(scan, block), addMedia)
    }
    eachBlock(scan, contentOf(scan, message), addMedia)
  }
  return { promptBound: tokens, hasMedia }
}

/**
 * Collects the text of tools, system prompt and messages of a valid request, and estimates the rest. The text
 * of a conversation begins with the text of its earlier turns, which may have been counted before.
 */
export function promptText(bytes: Buffer): PromptText {
  return countableText(scanObject(bytes))
}

/** Collects the same from a scanned request, for counting where a channel cannot count tokens. */
export function countableText(scan: ScannedObject): PromptText {
  const pieces: string[] = []
  let extraTokens = TYPICAL_REQUEST_TOKENS
  const addContent = (content: Node | undefined): void => {
    if (content === undefined) return
    if (scan.kindOf(content) === 'string') pieces.push(scan.parse(content) as string)
    eachBlock(scan, content, (block, type) => {
      const media = mediaOf(scan, block, type)
      if (media) extraTokens += media.typical(scan.endOf(block) - scan.startOf(block))
      else pieces.push(...textOf(scan, block, type))
    })
  }
  const tools = scan.span('tools')
  if (tools && tools.count > 0) pieces.push(scan.textOf(tools.node))
  const format = outputFormatNode(scan)
  if (format !== undefined) pieces.push(scan.textOf(format))
  addContent(scan.span('system')?.node)
  for (const message of elementsOf(scan, scan.span('messages')?.node)) {
    extraTokens += TYPICAL_MESSAGE_TOKENS
    addContent(contentOf(scan, message))
  }
  return { text: pieces.join('\n'), extraTokens }
}

/** Finds the output format, which servers show to the model; undefined if there is none. */
function outputFormatNode(scan: ScannedObject): Node | undefined {
  const isObject = (node: Node | undefined): node is Node =>
    node !== undefined && scan.kindOf(node) === 'object'
  const config = scan.span('output_config')?.node
  const format = isObject(config) ? scan.memberOf(config, 'format') : undefined
  return [scan.span('output_format')?.node, format].find(isObject)
}

/** Members with the text of a block, by type; other blocks are counted as JSON. */
const TEXT_MEMBERS: ReadonlyMap<string, readonly string[]> = new Map([
  ['text', ['text']],
  ['thinking', ['thinking']],
  ['redacted_thinking', []],
  ['tool_use', ['name', 'input']],
  ['tool_result', ['content']],
  ['document', ['title', 'context', 'source']],
])

function textOf(scan: ScannedObject, block: Node, type: string): string[] {
  const members = TEXT_MEMBERS.get(type)
  if (!members) return [textOrJson(scan, block)]
  return members.flatMap((key) => {
    const node = scan.memberOf(block, key)
    // The blocks within a result are visited on their own.
    if (node === undefined || scan.kindOf(node) === 'null' || scan.kindOf(node) === 'array') return []
    return [textOrJson(scan, node)]
  })
}

function textOrJson(scan: ScannedObject, node: Node): string {
  const isText = scan.kindOf(node) === 'string'
  return isText ? (scan.parse(node) as string) : scan.textOf(node)
}

/** Visits blocks, and the blocks within tool results. */
function eachBlock(
  scan: ScannedObject,
  content: Node | undefined,
  visit: (block: Node, type: string) => void,
): void {
  for (const block of elementsOf(scan, content)) {
    if (scan.kindOf(block) !== 'object') continue
    const type = textMember(scan, block, 'type') ?? ''
    visit(block, type)
    if (type === 'tool_result') eachBlock(scan, scan.memberOf(block, 'content'), visit)
  }
}

function mediaOf(scan: ScannedObject, block: Node, type: string): MediaTokens | undefined {
  const media = MEDIA.get(type)
  const source = media && sourceOf(scan, block)
  if (source === undefined) return media
  if (TEXT_SOURCES.has(textMember(scan, source, 'type') ?? '')) return undefined
  return type === 'image' && !mayBePicture(scan, source) ? DOCUMENT_TOKENS : media
}

/** Whether a source may be an image; a conversion makes others a file or text. */
function mayBePicture(scan: ScannedObject, source: Node): boolean {
  const kind = textMember(scan, source, 'type')
  if (kind === 'base64') return (textMember(scan, source, 'media_type') ?? '').startsWith('image/')
  return kind !== 'url' || /^https?:\/\//i.test(textMember(scan, source, 'url') ?? '')
}

function sourceOf(scan: ScannedObject, block: Node): Node | undefined {
  const source = scan.memberOf(block, 'source')
  return source !== undefined && scan.kindOf(source) === 'object' ? source : undefined
}

function sourceContent(scan: ScannedObject, block: Node): Node | undefined {
  const source = sourceOf(scan, block)
  return source === undefined ? undefined : scan.memberOf(source, 'content')
}

function isServerTool(scan: ScannedObject, tool: Node): boolean {
  const type = scan.kindOf(tool) === 'object' ? textMember(scan, tool, 'type') : undefined
  return type !== undefined && type !== 'custom'
}

function contentOf(scan: ScannedObject, message: Node): Node | undefined {
  return scan.kindOf(message) === 'object' ? scan.memberOf(message, 'content') : undefined
}

function elementsOf(scan: ScannedObject, node: Node | undefined): Node[] {
  return node !== undefined && scan.kindOf(node) === 'array' ? scan.elements(node) : []
}

function textMember(scan: ScannedObject, holder: Node, key: string): string | undefined {
  const node = scan.memberOf(holder, key)
  return node !== undefined && scan.kindOf(node) === 'string' ? (scan.parse(node) as string) : undefined
}
