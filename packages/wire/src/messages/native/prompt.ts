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
import type { FoundMedia, PromptRules } from '../../prompt-text.ts'

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
  for (const message of elementsOf(scan, scan.span('messages')?.node)) {
    const addMedia = (block: Node, type: string): void => {
      const media = findMedia(scan, block)
      namesPrompt ||= isNamed(scan, block, type)
      if (media) {
        hasMedia = true
        tokens += extraMediaTokens(scan, media, model)
        // A document that is not media itself may contain blocks with images.
      } else if (type === 'document') eachBlock(scan, sourceContent(scan, block), addMedia)
    }
    eachBlock(scan, contentOf(scan, message), addMedia)
  }
  return { promptBound: tokens, hasMedia, namesPrompt }
}

/** Calls a function for each block, including the blocks in tool results. */
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

/** Whether a block refers to a file that is stored at the provider. */
function isNamed(scan: ScannedObject, block: Node, type: string): boolean {
  if (type === 'container_upload') return true
  const source = type === 'document' || type === 'image' ? sourceOf(scan, block) : undefined
  return source !== undefined && textMember(scan, source, 'type') === 'file'
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

/** Describes which members of a messages request belong to the prompt. */
export const MESSAGES_PROMPT_RULES = {
  levels: {
    request: {
      notPrompt: {
        model: 'service',
        stream: 'service',
        max_tokens: 'sampling',
        temperature: 'sampling',
        top_p: 'sampling',
        top_k: 'sampling',
        stop_sequences: 'sampling',
        metadata: 'metadata',
        cache_control: 'service',
        service_tier: 'service',
        inference_geo: 'service',
        speed: 'service',
        thinking: 'service',
        anthropic_version: 'service',
        anthropic_beta: 'service',
      },
      read: {
        system: 'block',
        messages: 'message',
        tools: 'json',
        tool_choice: 'json',
        output_config: 'output',
        output_format: 'json',
      },
    },
    output: { notPrompt: { effort: 'service' }, read: { format: 'json' } },
    message: { notPrompt: { role: 'kind' }, read: { content: 'block' } },
    block: {
      notPrompt: {
        type: 'kind',
        id: 'id',
        tool_use_id: 'id',
        cache_control: 'service',
        signature: 'signature',
        is_error: 'service',
        citations: 'of the answer',
      },
      read: {
        text: 'text',
        thinking: 'text',
        data: 'encrypted',
        encrypted_content: 'encrypted',
        name: 'text',
        input: 'json',
        content: 'block',
        title: 'text',
        context: 'text',
        source: 'source',
      },
      media: findMedia,
    },
    source: {
      notPrompt: { type: 'kind', media_type: 'kind', file_id: 'id' },
      read: { data: 'text', url: 'text', content: 'block' },
    },
  },
  turns: 'messages',
  isFramed: true,
} as const satisfies PromptRules

/** How the conversations of two messages requests are compared. */
export const MESSAGES_COMPARISON_RULES: ConversationComparisonRules = {
  levels: MESSAGES_PROMPT_RULES,
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
