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
import { generatedText } from './generated-text.ts'

/** Estimate for a type of part whose contents match its type. */
interface MediaKind extends MediaTokens {
  /** Member with its URL or data, below the member that is named as the type. */
  readonly member: string
  /** Beginning of a URL or data of this type; anything else may be converted to a document, also text. */
  readonly pattern: RegExp
}

/** URLs that a conversion reads as images; others are detected from their bytes. */
const PICTURE = /^(?:https?:\/\/|data:\s*image\/[\w.+-]+\s*[;,])/i
const VIDEO = /^(?:https?:\/\/|data:\s*(?:image|video)\/[\w.+-]+\s*[;,])/i
/** Base64 of anything but a PDF, or a data URL of audio. */
const AUDIO = /^(?:data:\s*audio\/[\w.+-]+\s*[;,]|(?!JVBER)[\w+/-]{5})/i
/** Bytes of a URL or of data that are matched. */
const MAX_PREFIX_BYTES = 256

/**
 * Estimates by type of part.
 * - Audio is 10 to 32 tokens a second, in blocks of up to 30 seconds. Speech is hardly ever coded below 6
 *   kbit/s, which is 1,000 bytes of base64 a second: one token in 31 bytes; 16 leaves a margin.
 * - Video is about 300 tokens a second: 100,000 are five and a half minutes.
 */
const MEDIA: ReadonlyMap<string, MediaKind | MediaTokens> = new Map<string, MediaKind | MediaTokens>([
  ['image_url', { ...IMAGE_TOKENS, member: 'url', pattern: PICTURE }],
  [
    'input_audio',
    {
      max: (bytes) => 1000 + Math.ceil(bytes / 16),
      typical: (bytes) => 100 + Math.ceil(bytes / 400),
      member: 'data',
      pattern: AUDIO,
    },
  ],
  ['file', DOCUMENT_TOKENS],
  ['video_url', { max: () => 100_000, typical: () => 10_000, member: 'url', pattern: VIDEO }],
])

/** Fields for which servers, or a conversion, add instructions before the prompt. */
const INSTRUCTED_FIELDS = ['tools', 'functions', 'response_format'] as const

interface MediaPart {
  readonly node: Node
  readonly tokens: MediaTokens
  readonly bytes: number
}

/** Fields of which the model reads no more than their own bytes. */
const PLAIN_FIELDS: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'max_tokens',
  'max_completion_tokens',
  'stream',
  'stream_options',
  'n',
  'stop',
  'temperature',
  'top_p',
  'top_k',
  'seed',
  'presence_penalty',
  'frequency_penalty',
  'logit_bias',
  'logprobs',
  'top_logprobs',
  'prompt_cache_key',
  'prompt_cache_retention',
  'store',
  'metadata',
  'user',
  'safety_identifier',
  'service_tier',
])

/**
 * Bounds the tokens of a checked request's prompt without a tokenizer: no token is less than a byte, so the
 * bytes of the body bound its text; media count by `MEDIA`.
 */
export function promptBounds(scan: ScannedObject): PromptBounds {
  const messages = scan.span('messages')
  const model = String(scan.value('model'))
  let hasMedia = respondsInMedia(model)
  let tokens = scan.bytes.length + REQUEST_TOKENS + featureTokens(scan, PLAIN_FIELDS)
  if (!messages) return { promptBound: tokens, hasMedia }
  tokens += messages.count * MESSAGE_TOKENS
  const isInstructed = INSTRUCTED_FIELDS.some((field) => scan.has(field) && scan.kind(field) !== 'null')
  if (isInstructed) tokens += TOOLS_TOKENS
  for (const message of scan.elements(messages.node)) {
    for (const { tokens: media, bytes } of mediaParts(scan, message)) {
      hasMedia = true
      tokens += media.max(bytes, model) - bytes
    }
  }
  return { promptBound: tokens, hasMedia }
}

/**
 * Collects the text of tools and messages of a valid chat request, and estimates the rest. The text of a
 * conversation begins with the text of its earlier turns, which may have been counted before.
 */
export function promptText(bytes: Buffer): PromptText {
  const scan = scanObject(bytes)
  const pieces: string[] = []
  let extraTokens = TYPICAL_REQUEST_TOKENS
  for (const field of ['tools', 'functions', 'response_format']) {
    const member = scan.span(field)
    if (member) pieces.push(bytes.toString('utf8', member.start, member.end))
  }
  const messages = scan.span('messages')
  for (const message of messages ? scan.elements(messages.node) : []) {
    extraTokens += TYPICAL_MESSAGE_TOKENS
    const media = mediaParts(scan, message)
    for (const { tokens, bytes: size } of media) extraTokens += tokens.typical(size)
    pieces.push(...messageText(scan, message, new Set(media.map(({ node }) => node))))
  }
  return { text: pieces.join('\n'), extraTokens }
}

/** Collects role, name and all text of a message, without its media. */
function messageText(scan: ScannedObject, message: Node, media: ReadonlySet<Node>): string[] {
  const content = scan.memberOf(message, 'content')
  const value: Record<string, unknown> = {}
  for (const key of MESSAGE_FIELDS) {
    const node = scan.memberOf(message, key)
    if (node === undefined || (node === content && media.size > 0)) continue
    value[key] = scan.parse(node)
  }
  if (content !== undefined && media.size > 0) {
    value['content'] = scan
      .elements(content)
      .filter((part) => !media.has(part))
      .map((part) => scan.parse(part))
  }
  const named = [value['role'], value['name']].filter((text) => typeof text === 'string')
  return [...named, ...generatedText(value)]
}

const MESSAGE_FIELDS = [
  'role',
  'name',
  'content',
  'refusal',
  'reasoning_content',
  'reasoning',
  'function_call',
  'tool_calls',
] as const

function mediaParts(scan: ScannedObject, message: Node): MediaPart[] {
  const parts: MediaPart[] = []
  const content = scan.kindOf(message) === 'object' ? scan.memberOf(message, 'content') : undefined
  if (content === undefined || scan.kindOf(content) !== 'array') return parts
  for (const part of scan.elements(content)) {
    const type = scan.kindOf(part) === 'object' ? scan.memberOf(part, 'type') : undefined
    if (type === undefined || scan.kindOf(type) !== 'string') continue
    const tokens = mediaTokens(scan, part, scan.parse(type) as string)
    if (tokens) parts.push({ node: part, tokens, bytes: scan.endOf(part) - scan.startOf(part) })
  }
  return parts
}

/** Estimate for a part; a document's if its contents do not match its type. */
function mediaTokens(scan: ScannedObject, part: Node, type: string): MediaTokens | undefined {
  const kind = MEDIA.get(type)
  if (!kind || !('pattern' in kind)) return kind
  const holder = scan.memberOf(part, type)
  const isObject = holder !== undefined && scan.kindOf(holder) === 'object'
  const value = isObject ? scan.memberOf(holder, kind.member) : holder
  if (value === undefined || scan.kindOf(value) !== 'string') return DOCUMENT_TOKENS
  const start = scan.startOf(value) + 1
  const end = Math.min(scan.endOf(value) - 1, start + MAX_PREFIX_BYTES)
  // Some clients escape slashes; with other escapes, the part counts as a document.
  const beginning = scan.bytes.toString('latin1', start, end).replaceAll('\\/', '/')
  return kind.pattern.test(beginning) ? kind : DOCUMENT_TOKENS
}
