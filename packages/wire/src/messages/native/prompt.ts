import {
  DOCUMENT_TOKENS,
  tokensOfUnlistedMembers,
  IMAGE_TOKENS,
  extraMediaTokens,
  type MediaTokens,
  MESSAGE_TOKENS,
  type PromptBounds,
  REQUEST_TOKENS,
  respondsWithMedia,
  TOOLS_TOKENS,
} from '../../prompt-tokens.ts'
import {
  mayCompactPrompt,
  type ConversationComparisonRules,
  namesExcept,
} from '../../conversation-digests.ts'
import type { Node, ScannedObject } from '../../json/scanned-object.ts'
import { type FoundMedia, promptRules } from '../../prompt-text.ts'
import { eachObject, mayHaveTable, outlineOf, tableBits } from '../../shape/outline.ts'
import { MESSAGES_REQUEST } from '../shape.ts'

/** Request fields that add at most one token per byte to the model's input. */
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

/**
 * Number of tokens that is assumed for the instructions of one of the provider's tools. They have 200 to 750
 * tokens, and more for computer use.
 */
const SERVER_TOOL_TOKENS = 1500

/**
 * Maximum number of tokens of a checked request's prompt. No tokenizer is needed: a token of text has at
 * least one byte, so there are at most as many tokens as bytes. Media are counted with their maximum. Input
 * that the provider's tools add, such as pages that a search finds, is not known in advance and not included.
 */
export function promptBounds(scan: ScannedObject): PromptBounds {
  const model = String(scan.value('model'))
  let hasMedia = respondsWithMedia(model)
  let namesPrompt = false
  let tokens = scan.bytes.length + REQUEST_TOKENS + tokensOfUnlistedMembers(scan, PLAIN_FIELDS)
  tokens += (scan.span('messages')?.count ?? 0) * MESSAGE_TOKENS
  const tools = elementsOf(scan, scan.span('tools')?.node)
  if (tools.length > 0) tokens += TOOLS_TOKENS
  tokens += SERVER_TOOL_TOKENS * tools.filter((tool) => isServerTool(scan, tool)).length
  const messages = scan.span('messages')?.node
  if (messages !== undefined && mayHaveTable(scan, MESSAGES_REQUEST, STORED_OR_MEDIA))
    eachObject(scan, outlineOf(scan, MESSAGES_REQUEST), messages, (block, table) => {
      if (table === CONTAINER_UPLOAD) namesPrompt = true
      if (table !== DOCUMENT && table !== IMAGE) return
      namesPrompt ||= isNamed(scan, block)
      const media = findMedia(scan, block)
      if (!media) return
      hasMedia = true
      tokens += extraMediaTokens(scan, media, model)
    })
  return { promptBound: tokens, hasMedia, namesPrompt }
}

const CONTAINER_UPLOAD = MESSAGES_REQUEST.tableId('Block:container_upload')
const DOCUMENT = MESSAGES_REQUEST.tableId('Block:document')
const IMAGE = MESSAGES_REQUEST.tableId('Block:image')
const STORED_OR_MEDIA = tableBits([CONTAINER_UPLOAD, DOCUMENT, IMAGE])

/** Whether a block refers to a file that is stored at the provider. */
function isNamed(scan: ScannedObject, block: Node): boolean {
  const source = sourceOf(scan, block)
  return source !== undefined && textMember(scan, source, 'type') === 'file'
}

function sourceOf(scan: ScannedObject, block: Node): Node | undefined {
  const source = scan.memberOf(block, 'source')
  return source !== undefined && scan.kindOf(source) === 'object' ? source : undefined
}

function isServerTool(scan: ScannedObject, tool: Node): boolean {
  const type = scan.kindOf(tool) === 'object' ? textMember(scan, tool, 'type') : undefined
  return type !== undefined && type !== 'custom'
}

function elementsOf(scan: ScannedObject, node: Node | undefined): Node[] {
  return node !== undefined && scan.kindOf(node) === 'array' ? scan.elements(node) : []
}

/** How the prompt of a messages request is counted. */
export const MESSAGES_PROMPT_RULES = promptRules(MESSAGES_REQUEST, {
  media: { 'Block:document': findMedia, 'Block:image': findMedia },
  turns: 'messages',
  isFramed: true,
})

/** How the conversations of two messages requests are compared. */
export const MESSAGES_COMPARISON_RULES: ConversationComparisonRules = {
  prompt: MESSAGES_PROMPT_RULES,
  tools: ['tools'],
  uncompared: namesExcept([...PLAIN_FIELDS, 'diagnostics'], ['messages', 'system']),
  textIsPart: true,
  isUnforeseeable: mayCompactPrompt,
}

const MEDIA: ReadonlyMap<string, MediaTokens> = new Map([
  ['image', IMAGE_TOKENS],
  ['document', DOCUMENT_TOKENS],
])
/** Types of sources whose content is text and completely in the body. */
const TEXT_SOURCES: ReadonlySet<string | undefined> = new Set(['text', 'content'])

/** Finds the media of a block: images, and documents that are not text. */
function findMedia(scan: ScannedObject, block: Node): FoundMedia | undefined {
  const kind = textMember(scan, block, 'type')
  const media = MEDIA.get(kind ?? '')
  if (!media) return undefined
  const source = scan.memberOf(block, 'source')
  if (source === undefined || scan.kindOf(source) !== 'object') return { tokens: media, data: undefined }
  if (TEXT_SOURCES.has(textMember(scan, source, 'type'))) return undefined
  const data = [scan.memberOf(source, 'data'), scan.memberOf(source, 'url')].find(
    (node) => node !== undefined && scan.kindOf(node) === 'string',
  )
  return {
    tokens: kind === 'image' && !mayBePicture(scan, source) ? DOCUMENT_TOKENS : media,
    data,
    type: textMember(scan, source, 'media_type'),
    name: textMember(scan, block, 'title'),
  }
}

/** Whether a source may be an image. A conversion turns any other source into a file or a text. */
function mayBePicture(scan: ScannedObject, source: Node): boolean {
  const kind = textMember(scan, source, 'type')
  if (kind === 'base64') return (textMember(scan, source, 'media_type') ?? '').startsWith('image/')
  return kind !== 'url' || /^https?:\/\//i.test(textMember(scan, source, 'url') ?? '')
}

/** Returns a member that is a string; otherwise undefined. */
function textMember(scan: ScannedObject, holder: Node, key: string): string | undefined {
  const node = scan.memberOf(holder, key)
  return node !== undefined && scan.kindOf(node) === 'string' ? (scan.parse(node) as string) : undefined
}
