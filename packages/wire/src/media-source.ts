import type { MediaSource } from './conversation.ts'
import { refuseField } from './field-check.ts'
import { readTextFile } from './text-file.ts'

/** Media type if none is stated. */
const DEFAULT_TYPE = 'application/octet-stream'

/** Preferred names of media types, by other names for the same types. */
const ALIASES: ReadonlyMap<string, string> = new Map([
  ['image/jpg', 'image/jpeg'],
  ['audio/mp3', 'audio/mpeg'],
  ['audio/wave', 'audio/wav'],
  ['audio/x-wav', 'audio/wav'],
])

/**
 * Media types by the documented values of `format` in `input_audio`. For other values, or none, the type is
 * recognized from the bytes.
 */
const AUDIO_TYPES: ReadonlyMap<string, string> = new Map([
  ['mp3', 'audio/mpeg'],
  ['wav', 'audio/wav'],
])

/** Values of `format` in `input_audio`, by media type. */
const AUDIO_FORMATS: ReadonlyMap<string, string> = new Map(
  [...AUDIO_TYPES].map(([format, type]) => [type, format]),
)

/** Returns the value of `format` for `input_audio`; undefined if the media type has none. */
export function audioFormat(mediaType: string): string | undefined {
  return AUDIO_FORMATS.get(mediaType)
}

/**
 * Reads media at a `data:`, `http:` or `https:` URL. `family` is the kind of media, such as `image`, if the
 * exact type is known only after fetching.
 */
export function readMediaUrl(url: string, path: string, family: string | undefined): MediaSource {
  if (isDataUrl(url)) return inlineFromDataUrl(url, path)
  if (isWebUrl(url)) return { kind: 'url', url, mediaType: family }
  return refuseField(path, 'a data:, http: or https: URL', 'another string')
}

/** Reads the data of a file: a `data:`, `http:` or `https:` URL, or base64. */
export function readFileData(data: string, path: string): MediaSource {
  return isDataUrl(data) || isWebUrl(data)
    ? readMediaUrl(data, path, undefined)
    : inline(DEFAULT_TYPE, data, path)
}

/** Reads audio data: base64, in a named format if it states one. */
export function readAudioData(data: string, format: string | undefined, path: string): MediaSource {
  if (isDataUrl(data)) return inlineFromDataUrl(data, path)
  return inline(AUDIO_TYPES.get(format?.toLowerCase() ?? '') ?? DEFAULT_TYPE, data, path)
}

/** Reads a file of text, in the encoding in which guards have checked it. */
export function textOfMedia({
  mediaType,
  data,
}: {
  readonly mediaType: string
  readonly data: string
}): string {
  const bytes = Buffer.from(data, 'base64')
  return readTextFile(bytes, { mediaType, name: '' })?.text ?? bytes.toString()
}

/** First bytes of pictures, at their offsets, with their media types. */
const PICTURES: readonly (readonly [offset: number, bytes: string, mediaType: string])[] = [
  [0, '\x89PNG\r\n\x1a\n', 'image/png'],
  [0, '\xff\xd8\xff', 'image/jpeg'],
  [0, 'GIF87a', 'image/gif'],
  [0, 'GIF89a', 'image/gif'],
  [8, 'WEBP', 'image/webp'],
]
/** Number of characters of base64 that contain the first bytes of a picture. */
const PICTURE_HEAD = 24

/**
 * The media type of a picture by its first bytes; undefined if they are no picture's. Providers compare both, and
 * refuse a picture that is stated to be of another type.
 */
export function pictureType(base64: string): string | undefined {
  const head = Buffer.from(base64.slice(0, PICTURE_HEAD), 'base64').toString('latin1')
  const found = PICTURES.find(([offset, bytes]) => head.startsWith(bytes, offset))
  return found?.[2] === 'image/webp' && !head.startsWith('RIFF') ? undefined : found?.[2]
}

/** Media types of files that are no texts, whatever their bytes are. */
const NO_TEXT_TYPE = /^(?:image\/(?!svg)|audio\/|video\/|application\/pdf\b)/i

/** Whether a file is sent as a text to providers that take files of text only so. */
export function isTextFile(
  { mediaType, data }: { readonly mediaType: string; readonly data: string },
  name = '',
): boolean {
  if (NO_TEXT_TYPE.test(mediaType)) return false
  return readTextFile(Buffer.from(data, 'base64'), { mediaType, name }) !== undefined
}

/** Writes media as a `data:` URL. */
export function dataUrl({ mediaType, data }: { readonly mediaType: string; readonly data: string }): string {
  return `data:${mediaType};base64,${data}`
}

/**
 * The name of a file, for protocols that require one. OpenAI recognizes a PDF by the ending, which titles of
 * documents lack.
 */
export function fileName(mediaType: string, name = 'document'): string {
  return mediaType === 'application/pdf' && !/\.pdf$/i.test(name) ? `${name}.pdf` : name
}

function isDataUrl(text: string): boolean {
  return /^data:/i.test(text)
}

function isWebUrl(text: string): boolean {
  return /^https?:\/\//i.test(text) && URL.canParse(text)
}

const MAX_HEADER = 1024

function inlineFromDataUrl(url: string, path: string): MediaSource {
  const comma = url.slice(0, MAX_HEADER).indexOf(',')
  if (comma < 0) refuseField(path, 'a data: URL with data', 'one without')
  const [type = '', ...parameters] = url
    .slice('data:'.length, comma)
    .split(';')
    .map((word) => word.trim().toLowerCase())
  const mediaType = /^[\w.+-]+\/[\w.+-]+$/.test(type) ? (ALIASES.get(type) ?? type) : DEFAULT_TYPE
  const text = decodePercent(url.slice(comma + 1))
  if (parameters.includes('base64')) return inline(mediaType, text.toString('latin1'), path)
  return inline(mediaType, text.toString('base64'), path)
}

const PERCENT = 0x25
/** The value of a hexadecimal digit in ASCII; -1 for any other byte. */
const HEX_VALUES = Int8Array.from({ length: 256 }, (_, byte) =>
  '0123456789abcdef'.indexOf(String.fromCharCode(byte).toLowerCase()),
)

/** Decodes the percent-encoded data of a URL. An invalid escape sequence is kept unchanged. */
export function decodePercent(text: string): Buffer {
  const bytes = Buffer.from(text)
  let length = 0
  for (let at = 0; at < bytes.length; at += 1) {
    let byte = bytes[at] as number
    if (byte === PERCENT && at + 2 < bytes.length) {
      const high = HEX_VALUES[bytes[at + 1] as number] as number
      const low = HEX_VALUES[bytes[at + 2] as number] as number
      if (high >= 0 && low >= 0) {
        byte = 16 * high + low
        at += 2
      }
    }
    bytes[length++] = byte
  }
  return bytes.subarray(0, length)
}

/** Letters that stand for themselves in a URL, as bytes. */
const IS_UNRESERVED = Uint8Array.from({ length: 256 }, (_, byte) =>
  /[\w.~-]/.test(String.fromCharCode(byte)) ? 1 : 0,
)
const HEX_DIGITS = Buffer.from('0123456789ABCDEF')

/** Writes bytes as the data of a URL. */
export function encodePercent(bytes: Buffer): string {
  const written = Buffer.allocUnsafe(3 * bytes.length)
  let length = 0
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] as number
    if (IS_UNRESERVED[byte] === 1) {
      written[length++] = byte
      continue
    }
    written[length++] = PERCENT
    written[length++] = HEX_DIGITS[byte >> 4] as number
    written[length++] = HEX_DIGITS[byte & 15] as number
  }
  return written.toString('latin1', 0, length)
}

/** Reads base64 with its media type; `application/octet-stream` if none is stated. */
export function readInlineMedia(mediaType: string | undefined, base64: string, path: string): MediaSource {
  const type = mediaType?.toLowerCase() || DEFAULT_TYPE
  return inline(ALIASES.get(type) ?? type, base64, path)
}

function inline(mediaType: string, base64: string, path: string): MediaSource {
  const data = canonicalBase64(base64)
  if (data === undefined) refuseField(path, 'base64', 'other data')
  if (data === '') refuseField(path, 'base64', 'none')
  return { kind: 'inline', mediaType, data }
}

/** Padding at the end of base64. Its length is limited, so that the search takes linear time. */
const PADDING = /={1,2}$/

const PAD = 0x3d
const IS_SPACE = Uint8Array.from({ length: 256 }, (_, unit) => (/\s/.test(String.fromCharCode(unit)) ? 1 : 0))

/** Number of characters of base64 without white space and padding; an expression would take a second for some megabytes. */
function lettersIn(text: string): number {
  let letters = 0
  let pads = 0
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at)
    if (unit < IS_SPACE.length ? IS_SPACE[unit] === 1 : /\s/.test(text[at] as string)) continue
    letters += 1
    pads = unit === PAD ? pads + 1 : 0
  }
  return letters - Math.min(pads, 2)
}

/**
 * Converts base64 with white space, in the URL-safe alphabet or without padding to the standard form.
 * Undefined if it is invalid.
 */
function canonicalBase64(text: string): string | undefined {
  const canonical = Buffer.from(text, 'base64').toString('base64')
  if (canonical === text) return text
  // The decoder skips invalid characters, so invalid base64 gives a shorter result.
  return canonical.replace(PADDING, '').length === lettersIn(text) ? canonical : undefined
}
