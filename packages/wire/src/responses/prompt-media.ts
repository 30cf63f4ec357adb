import type { Node, ScannedObject } from '../json/scanned-object.ts'
import type { FoundMedia } from '../prompt-levels.ts'
import { AUDIO_TOKENS, DOCUMENT_TOKENS, IMAGE_TOKENS, type MediaTokens } from '../prompt-tokens.ts'

/** URLs that a conversion treats as an image; anything else is counted as a document. */
const PICTURE = /^(?:https?:\/\/|data:\s*image\/[\w.+-]+\s*[;,])/i
/** Number of bytes of a URL that are compared. */
const MAX_PREFIX_BYTES = 256

/** Media by the type of their part, and the members that may contain their data. */
const MEDIA: ReadonlyMap<string, { readonly tokens: MediaTokens; readonly members: readonly string[] }> =
  new Map([
    ['input_image', { tokens: IMAGE_TOKENS, members: ['image_url'] }],
    ['computer_screenshot', { tokens: IMAGE_TOKENS, members: ['image_url'] }],
    ['input_file', { tokens: DOCUMENT_TOKENS, members: ['file_data', 'file_url'] }],
    ['input_audio', { tokens: AUDIO_TOKENS, members: ['data'] }],
  ])

/** Finds the media of a part, by its type. */
export function findMedia(scan: ScannedObject, part: Node): FoundMedia | undefined {
  const type = scan.memberOf(part, 'type')
  if (type === undefined || scan.kindOf(type) !== 'string') return undefined
  const kind = MEDIA.get(scan.parse(type) as string)
  if (!kind) return undefined
  const sound = scan.memberOf(part, 'input_audio')
  const holder = sound !== undefined && scan.kindOf(sound) === 'object' ? sound : part
  const data = kind.members
    .map((member) => scan.memberOf(holder, member))
    .find((node) => node !== undefined && scan.kindOf(node) === 'string')
  const name = scan.memberOf(part, 'filename')
  const isOther = kind.tokens === IMAGE_TOKENS && data !== undefined && !isPicture(scan, data)
  return {
    tokens: isOther ? DOCUMENT_TOKENS : kind.tokens,
    data,
    name: name === undefined ? undefined : String(scan.parse(name)),
  }
}

/** An image given by its file id is counted as an image, although the file may be anything. */
function isPicture(scan: ScannedObject, url: Node): boolean {
  const start = scan.startOf(url) + 1
  const end = Math.min(scan.endOf(url) - 1, start + MAX_PREFIX_BYTES)
  // Some clients escape slashes. Data with other escape sequences are counted as a document.
  return PICTURE.test(scan.bytes.toString('latin1', start, end).replaceAll('\\/', '/'))
}
