import type { Dropped } from '../codec.ts'
import type { MediaPart, MediaSource, TextPart } from '../conversation.ts'
import { refuse } from '../field-check.ts'
import { type Fields, fieldsAt, kindOf, present, textAt } from '../field.ts'
import { audioAt, fileAt, mediaAt } from '../media-source.ts'
import { drop } from './dropped-fields.ts'

/** Part of a message's content or of a tool's output. */
export type ContentPart = TextPart | MediaPart

/** Reads a part of a known type. Returns undefined if it is empty. */
type PartReader = (part: Fields, path: string, dropped: Dropped) => ContentPart | undefined

const text: PartReader = (part, path, dropped) => {
  const annotations = part['annotations']
  if (Array.isArray(annotations) && annotations.length > 0) drop(dropped, 'input.annotations')
  return textPart(part, 'text', path)
}

const PARTS: ReadonlyMap<string, PartReader> = new Map<string, PartReader>([
  ['input_text', text],
  ['output_text', text],
  ['text', text],
  ['summary_text', text],
  ['refusal', (part, path) => textPart(part, 'refusal', path)],
  ['input_image', imagePart],
  ['input_file', (part, path) => ({ ...media(fileSource(part, path), part), ...nameOf(part, path) })],
  ['input_audio', audioPart],
])

/**
 * Decodes the parts of content. A string is one text; null, undefined and empty texts are left out. Parts of
 * unknown types are dropped and reported. Throws `invalid_request` for a part without a type, or whose
 * contents do not match its type.
 */
export function decodeContent(content: unknown, path: string, dropped: Dropped): ContentPart[] {
  if (content === undefined || content === null || content === '') return []
  if (typeof content === 'string') return [{ kind: 'text', text: content }]
  if (!Array.isArray(content)) refuse(path, 'a string or an array of parts', kindOf(content))
  return content.flatMap((value: unknown, index) => {
    const at = `${path}[${index}]`
    const part = fieldsAt(value, at)
    const read = PARTS.get(textAt(part['type'], `${at}.type`))
    if (!read) drop(dropped, 'input.unknown')
    return read?.(part, at, dropped) ?? []
  })
}

function textPart(part: Fields, key: 'text' | 'refusal', path: string): TextPart | undefined {
  const value = textAt(part[key], `${path}.${key}`)
  return value === '' ? undefined : { kind: 'text', text: value, ...cacheOf(part) }
}

function imagePart(part: Fields, path: string): MediaPart {
  const detail = present(part['detail'])
  const url = present(part['image_url'])
  if (url === undefined) refuseFileId(part, path, 'image_url')
  return {
    ...media(mediaAt(textAt(url, `${path}.image_url`), `${path}.image_url`, 'image/*'), part),
    ...(detail !== undefined && detail !== 'auto' && { detail: textAt(detail, `${path}.detail`) }),
  }
}

function fileSource(part: Fields, path: string): MediaSource {
  const data = present(part['file_data'])
  if (data !== undefined) return fileAt(textAt(data, `${path}.file_data`), `${path}.file_data`)
  const url = present(part['file_url'])
  if (url === undefined) refuseFileId(part, path, 'file_data')
  return mediaAt(textAt(url, `${path}.file_url`), `${path}.file_url`, 'application/*')
}

function audioPart(part: Fields, path: string): MediaPart {
  const at = `${path}.input_audio`
  const audio = fieldsAt(part['input_audio'], at)
  const format = textAt(audio['format'], `${at}.format`)
  return media(audioAt(textAt(audio['data'], `${at}.data`), format, `${at}.data`), part)
}

function refuseFileId(part: Fields, path: string, expected: string): void {
  if (present(part['file_id']) !== undefined)
    refuse(`${path}.file_id`, expected, 'the id of a file, which cannot be passed on to this model')
}

function nameOf(part: Fields, path: string): { name?: string } {
  const name = present(part['filename'])
  return name === undefined ? {} : { name: textAt(name, `${path}.filename`) }
}

function media(source: MediaSource, part: Fields): MediaPart {
  return { kind: 'media', source, ...cacheOf(part) }
}

/** Breakpoint up to which the prompt may be cached. */
function cacheOf(part: Fields): Pick<TextPart, 'cache'> {
  return present(part['prompt_cache_breakpoint']) === undefined ? {} : { cache: { ttl: undefined } }
}
