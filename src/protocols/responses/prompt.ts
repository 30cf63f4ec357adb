import { scanObject } from '../json/json-scan.ts'
import type { Node, ScannedObject } from '../json/scanned-object.ts'
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
import { generatedText } from './generated-text.ts'

/** Only an address that a conversion reads as a picture: anything else counts as a document. */
const PICTURE = /^(?:https?:\/\/|data:\s*image\/[\w.+-]+\s*[;,])/i
/** Bytes of an address that are looked at. */
const MAX_PREFIX_BYTES = 256

/** Sound is 10 to 32 tokens a second: one token in 31 bytes of base64 at the least; 16 leaves room. */
const AUDIO_TOKENS: MediaTokens = {
  max: (bytes) => 1000 + Math.ceil(bytes / 16),
  typical: (bytes) => 100 + Math.ceil(bytes / 400),
}

/** Media by the type of their part. */
const MEDIA: ReadonlyMap<string, MediaTokens> = new Map([
  ['input_image', IMAGE_TOKENS],
  ['input_file', DOCUMENT_TOKENS],
  ['input_audio', AUDIO_TOKENS],
  ['computer_screenshot', IMAGE_TOKENS],
])

/** Tokens of a tool that is sent as a function whose schema is not in the request: up to 150. */
const TYPED_TOOL_TOKENS = 160

/** Where an item has parts. */
const CONTENTS = ['content', 'output'] as const

/** Fields for which servers, or a conversion, put instructions of their own before the prompt. */
const INSTRUCTED_FIELDS = ['tools', 'text'] as const

/** Fields of which the model reads no more than their own bytes. */
const PLAIN_FIELDS: ReadonlySet<string> = new Set([
  'model',
  'input',
  'instructions',
  'max_output_tokens',
  'stream',
  'stream_options',
  'store',
  'background',
  'include',
  'temperature',
  'top_p',
  'top_logprobs',
  'truncation',
  'metadata',
  'user',
  'safety_identifier',
  'service_tier',
  'prompt_cache_key',
  'prompt_cache_retention',
  'prompt_cache_options',
  'client_metadata',
  // The continued response counts apart, by the tokens that it had.
  'previous_response_id',
])

interface MediaPart {
  readonly node: Node
  readonly tokens: MediaTokens
  readonly bytes: number
}

/**
 * Upper bound in tokens for the prompt of a checked request, without a tokenizer: no token is less than a
 * byte, so the bytes of the body bound its text; media count by `MEDIA`. The earlier response that a request
 * continues is not included.
 */
export function promptBounds(scan: ScannedObject): PromptBounds {
  const model = String(scan.value('model'))
  let hasMedia = respondsInMedia(model)
  let tokens = scan.bytes.length + REQUEST_TOKENS + featureTokens(scan, PLAIN_FIELDS)
  if (INSTRUCTED_FIELDS.some((field) => scan.has(field) && scan.kind(field) !== 'null'))
    tokens += TOOLS_TOKENS
  tokens += typedTools(scan, scan.span('tools')?.node) * TYPED_TOOL_TOKENS
  const items = itemsOf(scan)
  tokens += Math.max(items.length, 1) * MESSAGE_TOKENS
  for (const item of items)
    for (const { tokens: media, bytes } of mediaParts(scan, item)) {
      hasMedia = true
      tokens += media.max(bytes, model) - bytes
    }
  return { promptBound: tokens, hasMedia }
}

/**
 * The text of the tools and items of a valid request, and an allowance for what is not text. The text of a
 * conversation begins with the text of its earlier turns, which may have been counted before.
 */
export function promptText(bytes: Buffer): PromptText {
  return countableText(scanObject(bytes))
}

/** The same of a request that was scanned. */
export function countableText(scan: ScannedObject): PromptText {
  const pieces: string[] = []
  for (const field of INSTRUCTED_FIELDS) {
    const member = scan.span(field)
    if (member) pieces.push(scan.bytes.toString('utf8', member.start, member.end))
  }
  for (const field of ['instructions', 'input']) {
    const value = scan.value(field)
    if (typeof value === 'string') pieces.push(value)
  }
  let extraTokens = TYPICAL_REQUEST_TOKENS
  for (const item of itemsOf(scan)) {
    extraTokens += TYPICAL_MESSAGE_TOKENS
    const media = mediaParts(scan, item)
    for (const { tokens, bytes: size } of media) extraTokens += tokens.typical(size)
    pieces.push(...itemText(scan, item, new Set(media.map(({ node }) => node))))
  }
  return { text: pieces.join('\n'), extraTokens }
}

/** Tools that are no functions, those in namespaces among them. */
function typedTools(scan: ScannedObject, list: Node | undefined): number {
  if (list === undefined || scan.kindOf(list) !== 'array') return 0
  let count = 0
  for (const tool of scan.elements(list)) {
    if (scan.kindOf(tool) !== 'object') continue
    const type = scan.memberOf(tool, 'type')
    if (type !== undefined && scan.textOf(type) !== '"function"')
      count += 1 + typedTools(scan, scan.memberOf(tool, 'tools'))
  }
  return count
}

function itemsOf(scan: ScannedObject): Node[] {
  const input = scan.span('input')
  return input && scan.kindOf(input.node) === 'array'
    ? scan.elements(input.node).filter((item) => scan.kindOf(item) === 'object')
    : []
}

/** Collects the text of an item, without the media. */
function itemText(scan: ScannedObject, item: Node, media: ReadonlySet<Node>): string[] {
  if (media.size === 0) {
    const value = scan.parse(item) as Readonly<Record<string, unknown>>
    const { role, content, output } = value
    return [
      ...[role, content, output].filter((text) => typeof text === 'string'),
      ...generatedText(value),
      ...listText(output),
    ]
  }
  return CONTENTS.flatMap((key) =>
    partsOf(scan, item, key)
      .filter((part) => !media.has(part))
      .flatMap((part) => generatedText(scan.parse(part))),
  )
}

function listText(output: unknown): string[] {
  return Array.isArray(output) ? output.flatMap(generatedText) : []
}

const NO_PARTS: readonly Node[] = []

function partsOf(scan: ScannedObject, item: Node, key: string): readonly Node[] {
  const list = scan.memberOf(item, key)
  if (list === undefined) return NO_PARTS
  if (scan.kindOf(list) === 'object') return [list]
  return scan.kindOf(list) === 'array'
    ? scan.elements(list).filter((part) => scan.kindOf(part) === 'object')
    : NO_PARTS
}

function mediaParts(scan: ScannedObject, item: Node): MediaPart[] {
  const parts: MediaPart[] = []
  for (const key of CONTENTS)
    for (const node of partsOf(scan, item, key)) {
      const type = scan.memberOf(node, 'type')
      if (type === undefined || scan.kindOf(type) !== 'string') continue
      const kind = MEDIA.get(scan.parse(type) as string)
      if (!kind) continue
      const tokens = kind === IMAGE_TOKENS && !isPicture(scan, node) ? DOCUMENT_TOKENS : kind
      parts.push({ node, tokens, bytes: scan.endOf(node) - scan.startOf(node) })
    }
  return parts
}

/** A picture by its id may be anything that was uploaded, yet is shown as one. */
function isPicture(scan: ScannedObject, part: Node): boolean {
  const url = scan.memberOf(part, 'image_url')
  if (url === undefined || scan.kindOf(url) !== 'string') return true
  const start = scan.startOf(url) + 1
  const end = Math.min(scan.endOf(url) - 1, start + MAX_PREFIX_BYTES)
  // Some clients escape slashes; whoever escapes more has it counted as a document.
  return PICTURE.test(scan.bytes.toString('latin1', start, end).replaceAll('\\/', '/'))
}
