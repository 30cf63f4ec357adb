import type { CacheMark, MediaPart, MediaSource, TextPart } from './conversation.ts'
import { textOfForeignPart } from './block-text.ts'
import { refuseField } from './field-check.ts'
import { type Fields, nullToUndefined, requireObject, requireText } from './field.ts'
import { asRecord } from './json/record.ts'
import { readAudioData, readFileData, readMediaUrl } from './media-source.ts'

/** Reads the cache mark of a part, as an object to spread. */
type CacheReader = (part: Fields, path: string) => { readonly cache?: CacheMark }

/** Reads a part of a known type, without its cache mark; undefined if it is empty. */
type PartReader = (part: Fields, path: string) => TextPart | MediaPart | undefined

const text = (part: Fields, path: string): TextPart | undefined => textOf(part['text'], `${path}.text`)
const image: PartReader = (part, path) => imagePart(part, path)
const file: PartReader = (part, path) => filePart(part, path)

/**
 * Types of parts of chat and of responses. Clients mix them up, and send those of one protocol in requests of the
 * other.
 */
const PARTS: ReadonlyMap<string, PartReader> = new Map<string, PartReader>([
  ['text', text],
  ['input_text', text],
  ['output_text', text],
  ['summary_text', text],
  ['refusal', (part, path) => textOf(part['refusal'], `${path}.refusal`)],
  ['image_url', image],
  ['input_image', image],
  ['video_url', (part, path) => media(linked(part, 'video_url', 'video/*', path))],
  ['input_audio', audioPart],
  ['file', (part, path) => filePart(requireObject(part['file'], `${path}.file`), `${path}.file`)],
  ['input_file', file],
])

/**
 * Reads a content part of chat or of responses, in requests of either. Returns undefined for a part of a type that
 * neither has and that is no text, and an empty list for an empty part. Throws `invalid_request` for a part whose
 * contents do not match its type.
 */
export function readOpenAiPart(
  type: string,
  part: Fields,
  path: string,
  readCache: CacheReader,
): readonly (TextPart | MediaPart)[] | undefined {
  const read = PARTS.get(type)
  if (!read) {
    const foreign = textOfForeignPart(type, part)
    if (foreign === undefined) return undefined
    return foreign === '' ? [] : [{ kind: 'text', text: foreign, ...readCache(part, path) }]
  }
  const decoded = read(part, path)
  return decoded ? [{ ...decoded, ...readCache(part, path) }] : []
}

function textOf(value: unknown, path: string): TextPart | undefined {
  const written = requireText(value, path)
  return written === '' ? undefined : { kind: 'text', text: written }
}

/** Reads an image. Its resolution is beside the URL, or in one object with it. */
function imagePart(part: Fields, path: string): MediaPart {
  const url = nullToUndefined(part['image_url'])
  if (url === undefined) refuseFileId(part, path, 'image_url')
  const inner = asRecord(url)
  const [given, at] = inner ? [inner, `${path}.image_url`] : [part, path]
  const detail = nullToUndefined(given['detail'])
  return {
    ...media(linked(part, 'image_url', 'image/*', path)),
    ...(detail !== undefined && detail !== 'auto' && { detail: requireText(detail, `${at}.detail`) }),
  }
}

/** Reads the URL in a member of a part, or in an object `{url}`. */
function linked(part: Fields, key: string, family: string, path: string): MediaSource {
  const value = part[key]
  if (typeof value === 'string') return readMediaUrl(value, `${path}.${key}`, family)
  const at = `${path}.${key}.url`
  return readMediaUrl(requireText(requireObject(value, `${path}.${key}`)['url'], at), at, family)
}

function audioPart(part: Fields, path: string): MediaPart {
  const at = `${path}.input_audio`
  const audio = requireObject(part['input_audio'], at)
  const given = nullToUndefined(audio['format'])
  const format = given === undefined ? undefined : requireText(given, `${at}.format`)
  return media(readAudioData(requireText(audio['data'], `${at}.data`), format, `${at}.data`))
}

/** Reads the members of a file. */
function filePart(given: Fields, path: string): MediaPart {
  const name = nullToUndefined(given['filename'])
  return {
    ...media(fileSource(given, path)),
    ...(name !== undefined && { name: requireText(name, `${path}.filename`) }),
  }
}

function fileSource(given: Fields, path: string): MediaSource {
  const data = nullToUndefined(given['file_data'])
  const url = nullToUndefined(given['file_url'])
  if (data === undefined && url !== undefined)
    return readMediaUrl(requireText(url, `${path}.file_url`), `${path}.file_url`, 'application/*')
  if (data === undefined) refuseFileId(given, path, 'file_data')
  return readFileData(requireText(data, `${path}.file_data`), `${path}.file_data`)
}

function refuseFileId(part: Fields, path: string, expected: string): void {
  if (nullToUndefined(part['file_id']) !== undefined)
    refuseField(`${path}.file_id`, expected, 'the id of a file, which cannot be passed on to this model')
}

function media(source: MediaSource): MediaPart {
  return { kind: 'media', source }
}
