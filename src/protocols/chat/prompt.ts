import { scanObject } from '../json-scan.ts'
import type { Node, ScannedObject } from '../scanned-object.ts'
import { generatedText } from './generated-text.ts'

/** What a tokenizer counts where the upstream reported nothing. */
export interface PromptText {
  readonly text: string
  /** A flat allowance in tokens for media, message frames and the like: added to the count of `text`. */
  readonly extraTokens: number
}

/** Tokens of one media part, of which `bytes` is the length in the body, base64 included. */
interface MediaTokens {
  /** As many as it can have. */
  readonly most: (bytes: number, model: string) => number
  /** As many as it has for the most part. */
  readonly typical: (bytes: number) => number
}

/**
 * Media cost tokens by what they show, not by their bytes:
 * - A picture is cut into tiles or patches after it was scaled down. 1,445 tokens is the most for the models that count
 *   tiles, 4,784 for those that count 28-pixel patches, 10,000 where 32-pixel patches are taken at full size. gpt-4o-mini
 *   counts 33 times as many as gpt-4o (at a price as much lower): 2,833 + 8 × 5,667.
 * - Sound is 10 to 32 tokens a second, in blocks of up to 30 seconds. Speech is hardly ever coded below 6 kbit/s, that is
 *   1,000 bytes of base64 a second: one token in 31 bytes; 16 leaves room.
 * - A document brings its text and, for PDF, a picture of each page: 20,000 for the pages of a short one, and a token
 *   a byte for text (a PDF's is compressed, base64 and tokens of four letters make up for that), within a context of 200,000.
 * - A film is about 300 tokens a second: 100,000 is five minutes and a half.
 * What a URL or a file id stands for cannot be known here, so size never makes it less than the flat part.
 */
const MEDIA: ReadonlyMap<string, MediaTokens> = new Map<string, MediaTokens>([
  [
    'image_url',
    { most: (_bytes, model) => (model.includes('4o-mini') ? 48_169 : 10_000), typical: () => 1000 },
  ],
  [
    'input_audio',
    { most: (bytes) => 1000 + Math.ceil(bytes / 16), typical: (bytes) => 100 + Math.ceil(bytes / 400) },
  ],
  ['file', { most: (bytes) => Math.min(20_000 + bytes, 200_000), typical: () => 3000 }],
  ['video_url', { most: () => 100_000, typical: () => 10_000 }],
])

/** Marks around a message; `<|start|>role<|message|>…<|end|>` and its like are 3 to 5. */
const MESSAGE_TOKENS = 8
/** What opens the answer, and what servers put before a conversation of their own accord. */
const REQUEST_TOKENS = 256
/** The instructions that servers add where there are tools: up to about 500. */
const TOOLS_TOKENS = 512

/** For an estimate rather than a bound. */
const TYPICAL_MESSAGE_TOKENS = 4
const TYPICAL_REQUEST_TOKENS = 3

interface MediaPart {
  readonly node: Node
  readonly tokens: MediaTokens
  readonly bytes: number
}

/**
 * An upper bound in tokens for the prompt of a checked request, without a tokenizer: no token is less than a byte, so
 * the bytes of the body (whatever of it the provider shows to the model) bound its text; media count by `MEDIA`.
 */
export function promptBound(scan: ScannedObject): number {
  const messages = scan.span('messages')
  const model = String(scan.value('model'))
  let tokens = scan.bytes.length + REQUEST_TOKENS
  if (!messages) return tokens
  tokens += messages.count * MESSAGE_TOKENS
  if (scan.kind('tools') === 'array' || scan.kind('functions') === 'array') tokens += TOOLS_TOKENS
  for (const message of scan.elements(messages.node)) {
    for (const { tokens: media, bytes } of mediaParts(scan, message))
      tokens += media.most(bytes, model) - bytes
  }
  return tokens
}

/** The text of the messages and tools of a valid chat request, and an allowance for what is not text. */
export function promptText(bytes: Buffer): PromptText {
  const scan = scanObject(bytes)
  const pieces: string[] = []
  let extraTokens = TYPICAL_REQUEST_TOKENS
  const messages = scan.span('messages')
  for (const message of messages ? scan.elements(messages.node) : []) {
    extraTokens += TYPICAL_MESSAGE_TOKENS
    const media = mediaParts(scan, message)
    for (const { tokens, bytes: size } of media) extraTokens += tokens.typical(size)
    pieces.push(...messageText(scan, message, new Set(media.map(({ node }) => node))))
  }
  for (const field of ['tools', 'functions', 'response_format']) {
    const member = scan.span(field)
    if (member) pieces.push(bytes.toString('utf8', member.start, member.end))
  }
  return { text: pieces.join('\n'), extraTokens }
}

/** Role, name and everything written, the media left where they are. */
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
    const tokens = MEDIA.get(scan.parse(type) as string)
    if (tokens) parts.push({ node: part, tokens, bytes: scan.endOf(part) - scan.startOf(part) })
  }
  return parts
}
