import { scanObject } from '../json/json-scan.ts'
import type { Node, ScannedObject } from '../json/scanned-object.ts'
import {
  DOCUMENT_TOKENS,
  featureTokens,
  IMAGE_TOKENS,
  type MediaTokens,
  MESSAGE_TOKENS,
  type PromptText,
  REQUEST_TOKENS,
  TOOLS_TOKENS,
  TYPICAL_MESSAGE_TOKENS,
  TYPICAL_REQUEST_TOKENS,
} from '../prompt-tokens.ts'
import { generatedText } from './generated-text.ts'
import { nodeOf, snakeCase, topMember } from './spelling.ts'

/** Tokens of what the request only names, such as a film or cached content: up to the largest context. */
const NAMED_TOKENS = DOCUMENT_TOKENS.max(Number.POSITIVE_INFINITY, '')

/** Files of any kind by their address. */
const FILE_TOKENS: MediaTokens = { max: () => NAMED_TOKENS, typical: () => 3000 }

/** Sound is 32 tokens a second, and no second of it is less than 512 bytes. */
const AUDIO_TOKENS: MediaTokens = {
  max: (bytes) => 1000 + Math.ceil(bytes / 16),
  typical: (bytes) => 100 + Math.ceil(bytes / 400),
}

/** Beginnings of the names of members that hold media, in either spelling, and of an escape in a name. */
const MEDIA_MARKS = ['inline', 'file', '\\u'].map((mark) => Buffer.from(mark))

/** Fields of which the model reads no more than their own bytes. */
const PLAIN_FIELDS: ReadonlySet<string> = new Set(
  [
    'model',
    'stream',
    'contents',
    'systemInstruction',
    'generationConfig',
    'safetySettings',
    'labels',
    'serviceTier',
  ].flatMap((name) => [name, snakeCase(name)]),
)

/** Fields for which the provider puts instructions of its own before the prompt. */
const INSTRUCTED_FIELDS = ['tools', 'cachedContent'] as const

interface MediaPart {
  readonly node: Node
  readonly tokens: MediaTokens
  readonly bytes: number
}

/**
 * Upper bound in tokens for the prompt of a checked request without its media, and without a tokenizer: no
 * token is less than a byte, so the bytes of the body bound its text.
 */
export function promptBound(scan: ScannedObject): number {
  let tokens = scan.bytes.length + REQUEST_TOKENS + featureTokens(scan, PLAIN_FIELDS)
  if (INSTRUCTED_FIELDS.some((field) => topMember(scan, field))) tokens += TOOLS_TOKENS
  if (topMember(scan, 'cachedContent')) tokens += NAMED_TOKENS
  return tokens + Math.max(contentsOf(scan).length, 1) * MESSAGE_TOKENS
}

/** Contents without media. */
export const NO_MEDIA: ReturnType<typeof mediaOf> = { isAny: false, excess: 0 }

/**
 * Whether the contents have anything but text, calls and code, and the tokens that this can have beyond the
 * bytes that it has in the body.
 */
export function mediaOf(
  scan: ScannedObject,
  model: string,
): { readonly isAny: boolean; readonly excess: number } {
  let isAny = false
  let excess = 0
  if (mayHaveMedia(scan))
    for (const content of contentsOf(scan)) {
      isAny ||= hasMediaIn(scan, content)
      excess += mediaExcess(scan, content, model)
    }
  return { isAny, excess }
}

/** Tokens that the media of a content can have beyond the bytes that they have in the body. */
export function mediaExcess(scan: ScannedObject, content: Node, model: string): number {
  return mediaIn(scan, content).reduce((sum, { tokens, bytes }) => sum + tokens.max(bytes, model) - bytes, 0)
}

/** Whether the body has a member that could hold media: none does where this is false. */
function mayHaveMedia({ bytes }: ScannedObject): boolean {
  return MEDIA_MARKS.some((mark) => bytes.includes(mark))
}

/** Whether a content has anything but text, calls and code. */
export function hasMediaIn(scan: ScannedObject, content: Node): boolean {
  return mediaIn(scan, content).length > 0
}

/** The text of the contents and tools of a valid request, and an allowance for what is not text. */
export function promptText(bytes: Buffer): PromptText {
  const scan = scanObject(bytes)
  const pieces: string[] = []
  let extraTokens = TYPICAL_REQUEST_TOKENS
  for (const content of contentsOf(scan)) {
    const read = contentText(scan, content)
    extraTokens += TYPICAL_MESSAGE_TOKENS + read.mediaTokens
    pieces.push(...read.pieces)
  }
  const system = topMember(scan, 'systemInstruction')
  if (system) for (const part of partsIn(scan, system.node)) pieces.push(...textsOf(scan, part))
  const tools = topMember(scan, 'tools')
  if (tools) pieces.push(scan.textOf(tools.node))
  return { text: pieces.join('\n'), extraTokens }
}

/** Texts of a content, and the typical tokens of its media. */
export function contentText(
  scan: ScannedObject,
  content: Node,
): { readonly pieces: readonly string[]; readonly mediaTokens: number } {
  const media = mediaIn(scan, content)
  const nodes = new Set(media.map(({ node }) => node))
  return {
    pieces: partsIn(scan, content).flatMap((part) => (nodes.has(part) ? [] : textsOf(scan, part))),
    mediaTokens: media.reduce((sum, { tokens, bytes }) => sum + tokens.typical(bytes), 0),
  }
}

function textsOf(scan: ScannedObject, part: Node): string[] {
  const response = nodeOf(scan, part, 'functionResponse')
  return response === undefined ? generatedText(scan.parse(part)) : [scan.textOf(response)]
}

function contentsOf(scan: ScannedObject): Node[] {
  const contents = topMember(scan, 'contents')
  return contents ? objectsIn(scan, contents.node) : []
}

function partsIn(scan: ScannedObject, content: Node): Node[] {
  const parts = nodeOf(scan, content, 'parts')
  return parts === undefined ? [] : objectsIn(scan, parts)
}

function objectsIn(scan: ScannedObject, node: Node): Node[] {
  const nodes = scan.kindOf(node) === 'array' ? scan.elements(node) : [node]
  return nodes.filter((one) => scan.kindOf(one) === 'object')
}

/** Media in a content, those in the responses of tools among them. */
function mediaIn(scan: ScannedObject, content: Node): MediaPart[] {
  return partsIn(scan, content).flatMap((part) => {
    const response = nodeOf(scan, part, 'functionResponse')
    return [part, ...(response === undefined ? [] : partsIn(scan, response))].flatMap((node) => {
      const tokens = mediaTokens(scan, node)
      return tokens ? [{ node, tokens, bytes: scan.endOf(node) - scan.startOf(node) }] : []
    })
  })
}

function mediaTokens(scan: ScannedObject, part: Node): MediaTokens | undefined {
  const inline = nodeOf(scan, part, 'inlineData')
  const holder = inline ?? nodeOf(scan, part, 'fileData')
  if (holder === undefined) return undefined
  const type = nodeOf(scan, holder, 'mimeType')
  const name = type === undefined ? '' : String(scan.parse(type))
  if (name.startsWith('image/')) return IMAGE_TOKENS
  if (inline === undefined || name.startsWith('video/')) return FILE_TOKENS
  return name.startsWith('audio/') ? AUDIO_TOKENS : DOCUMENT_TOKENS
}
