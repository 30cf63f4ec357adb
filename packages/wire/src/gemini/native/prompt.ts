import type { Node, ScannedObject } from '../../json/scanned-object.ts'
import type { FoundMedia } from '../../prompt-levels.ts'
import {
  featureTokens,
  mediaExcess as excessOf,
  MESSAGE_TOKENS,
  REQUEST_TOKENS,
  TOOLS_TOKENS,
} from '../../prompt-tokens.ts'
import { findMedia } from '../prompt-media.ts'
import { nodeOf, snakeCase, topMember } from '../spelling.ts'

/** Beginnings of the names of members that contain media, in either spelling, and of an escape in a name. */
const MEDIA_MARKS = ['inline', 'file', '\\u'].map((mark) => Buffer.from(mark))

/** Fields that add no more tokens to the model's input than they have bytes. */
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

/** Fields for which the provider adds instructions before the prompt. */
const INSTRUCTED_FIELDS = ['tools', 'cachedContent'] as const

/**
 * Upper bound on the tokens of a checked request's prompt without its media, and without a tokenizer: a token
 * has at least one byte, so the bytes of the body bound its text. Cached content is not included.
 */
export function promptBound(scan: ScannedObject): number {
  let tokens = scan.bytes.length + REQUEST_TOKENS + featureTokens(scan, PLAIN_FIELDS)
  if (INSTRUCTED_FIELDS.some((field) => topMember(scan, field))) tokens += TOOLS_TOKENS
  return tokens + Math.max(contentsOf(scan).length, 1) * MESSAGE_TOKENS
}

/** Media of contents that have none. */
export const NO_MEDIA: ReturnType<typeof mediaOf> = { isAny: false, excess: 0 }

/**
 * Reports whether the contents have anything but text, calls and code, and how many tokens this can have
 * beyond one per byte in the body.
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

/** Tokens that the media of a content can have beyond one per byte in the body. */
export function mediaExcess(scan: ScannedObject, content: Node, model: string): number {
  return mediaIn(scan, content).reduce((sum, media) => sum + excessOf(scan, media, model), 0)
}

/** Reports whether the body may have a member with media. False is certain. */
function mayHaveMedia({ bytes }: ScannedObject): boolean {
  return MEDIA_MARKS.some((mark) => bytes.includes(mark))
}

/** Reports whether a content has anything but text, calls and code. */
export function hasMediaIn(scan: ScannedObject, content: Node): boolean {
  return mediaIn(scan, content).length > 0
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

/** Media in a content, including those in function responses. */
function mediaIn(scan: ScannedObject, content: Node): FoundMedia[] {
  return partsIn(scan, content).flatMap((part) => {
    const response = nodeOf(scan, part, 'functionResponse')
    return [part, ...(response === undefined ? [] : partsIn(scan, response))].flatMap((node) => {
      const media = findMedia(scan, node)
      return media ? [media] : []
    })
  })
}
