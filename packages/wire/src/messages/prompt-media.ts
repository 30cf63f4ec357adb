import type { Node, ScannedObject } from '../json/scanned-object.ts'
import type { FoundMedia } from '../prompt-levels.ts'
import { DOCUMENT_TOKENS, IMAGE_TOKENS, type MediaTokens } from '../prompt-tokens.ts'

const MEDIA: ReadonlyMap<string, MediaTokens> = new Map([
  ['image', IMAGE_TOKENS],
  ['document', DOCUMENT_TOKENS],
])
/** Sources that are text and completely in the body. */
const TEXT_SOURCES: ReadonlySet<string | undefined> = new Set(['text', 'content'])

/** Finds the media of a block: images, and documents that are not text. */
export function findMedia(scan: ScannedObject, block: Node): FoundMedia | undefined {
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

/** Reports whether a source may be an image; a conversion turns any other into a file or text. */
function mayBePicture(scan: ScannedObject, source: Node): boolean {
  const kind = textMember(scan, source, 'type')
  if (kind === 'base64') return (textMember(scan, source, 'media_type') ?? '').startsWith('image/')
  return kind !== 'url' || /^https?:\/\//i.test(textMember(scan, source, 'url') ?? '')
}

/** Returns a member that is a string; otherwise undefined. */
export function textMember(scan: ScannedObject, holder: Node, key: string): string | undefined {
  const node = scan.memberOf(holder, key)
  return node !== undefined && scan.kindOf(node) === 'string' ? (scan.parse(node) as string) : undefined
}
