import type { Node, ScannedObject } from '../json/scanned-object.ts'
import type { FoundMedia } from '../prompt-levels.ts'
import { AUDIO_TOKENS, DOCUMENT_TOKENS, IMAGE_TOKENS, type MediaTokens } from '../prompt-tokens.ts'

/** Estimate for a type of part, valid if its data match the type. */
interface MediaKind extends MediaTokens {
  /** Member with the URL or the data, inside the member that has the name of the type. */
  readonly member: string
  /**
   * Beginning of a URL or of data of this type. Anything else may be converted to a document, even if it is
   * text.
   */
  readonly pattern: RegExp
}

/** URLs that a conversion treats as images. Other types are detected from the bytes. */
const PICTURE = /^(?:https?:\/\/|data:\s*image\/[\w.+-]+\s*[;,])/i
const VIDEO = /^(?:https?:\/\/|data:\s*(?:image|video)\/[\w.+-]+\s*[;,])/i
/** Base64 of anything but a PDF, or a data URL of audio. */
const AUDIO = /^(?:data:\s*audio\/[\w.+-]+\s*[;,]|(?!JVBER)[\w+/-]{5})/i
/** Number of bytes of a URL or of data that are compared. */
const MAX_PREFIX_BYTES = 256

/**
 * Estimates by type of part. Video has about 300 tokens per second, so that 100,000 are five and a half
 * minutes.
 */
const MEDIA: ReadonlyMap<string, MediaKind> = new Map([
  ['image_url', { ...IMAGE_TOKENS, member: 'url', pattern: PICTURE }],
  ['input_audio', { ...AUDIO_TOKENS, member: 'data', pattern: AUDIO }],
  ['file', { ...DOCUMENT_TOKENS, member: 'file_data', pattern: /^/ }],
  ['video_url', { max: () => 100_000, typical: () => 10_000, member: 'url', pattern: VIDEO }],
])

/** Finds the media of a part of content, by its type. */
export function findMedia(scan: ScannedObject, part: Node): FoundMedia | undefined {
  const type = scan.memberOf(part, 'type')
  if (type === undefined || scan.kindOf(type) !== 'string') return undefined
  const name = scan.parse(type) as string
  const kind = MEDIA.get(name)
  if (!kind) return undefined
  const holder = scan.memberOf(part, name)
  const isObject = holder !== undefined && scan.kindOf(holder) === 'object'
  const value = isObject ? scan.memberOf(holder, kind.member) : holder
  const data = value !== undefined && scan.kindOf(value) === 'string' ? value : undefined
  const filename = isObject && name === 'file' ? scan.memberOf(holder, 'filename') : undefined
  return {
    tokens: data !== undefined && isOfKind(scan, data, kind) ? kind : DOCUMENT_TOKENS,
    data,
    name: filename === undefined ? undefined : String(scan.parse(filename)),
  }
}

/** Reports whether the data match the type of the part. If not, they are estimated as a document. */
function isOfKind(scan: ScannedObject, data: Node, { pattern }: MediaKind): boolean {
  const start = scan.startOf(data) + 1
  const end = Math.min(scan.endOf(data) - 1, start + MAX_PREFIX_BYTES)
  // Some clients escape slashes. With other escape sequences the part is estimated as a document.
  return pattern.test(scan.bytes.toString('latin1', start, end).replaceAll('\\/', '/'))
}
