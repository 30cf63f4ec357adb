import type { Dropped } from '../codec.ts'
import type { MediaPart, MediaSource, OpaquePart, TextPart, ThinkingPart } from '../conversation.ts'
import { refuse } from '../field-check.ts'
import { cacheOf } from './cache-control.ts'
import { type Fields, fieldsAt, kindOf, listAt, present, textAt } from '../field.ts'
import { audioAt, fileAt, mediaAt } from '../media-source.ts'
import { generatedText } from './generated-text.ts'

/** Part of a message's `content`. */
export type ContentPart = TextPart | MediaPart | ThinkingPart | OpaquePart

/** Reads a part of a known type. Returns undefined if it is empty. */
type PartReader = (part: Fields, path: string, dropped: Dropped) => ContentPart | undefined

const PARTS: ReadonlyMap<string, PartReader> = new Map<string, PartReader>([
  ['text', (part, path) => textPart(part, 'text', path)],
  ['refusal', (part, path) => textPart(part, 'refusal', path)],
  ['thinking', thinkingPart],
  [
    'image_url',
    (part, path) => {
      const detail = fieldsIn(part['image_url'])?.['detail']
      const isSaid = present(detail) !== undefined && detail !== 'auto'
      return {
        ...media(linked(part, 'image_url', 'image/*', path), part, path),
        ...(isSaid && { detail: textAt(detail, `${path}.image_url.detail`) }),
      }
    },
  ],
  ['video_url', (part, path) => media(linked(part, 'video_url', 'video/*', path), part, path)],
  ['input_audio', audioPart],
  ['file', filePart],
])

/**
 * Decodes a message's content. A string is one text; null and empty texts are left out. A part of a type that
 * only chat may have becomes an opaque part. Throws `invalid_request` for a part without a type, or whose
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
    return read ? (read(part, at, dropped) ?? []) : { kind: 'opaque', protocol: 'chat', value }
  })
}

function textPart(part: Fields, key: 'text' | 'refusal', path: string): TextPart | undefined {
  const text = textAt(part[key], `${path}.${key}`)
  return text === '' ? undefined : { kind: 'text', text, ...cacheOf(part, path) }
}

/** Reads a `thinking` part, which some providers send as text or as a list of parts with text. */
function thinkingPart(part: Fields, path: string): ThinkingPart | undefined {
  if (typeof part['thinking'] !== 'string') listAt(part['thinking'], `${path}.thinking`)
  const text = generatedText({ content: [part] }).join('')
  return text === '' ? undefined : { kind: 'thinking', text }
}

/** Reads the `{url}` in a part's member. Some clients send the URL without the object. */
function linked(part: Fields, key: string, family: string, path: string): MediaSource {
  const value = part[key]
  if (typeof value === 'string') return mediaAt(value, `${path}.${key}`, family)
  const at = `${path}.${key}.url`
  return mediaAt(textAt(fieldsAt(value, `${path}.${key}`)['url'], at), at, family)
}

function audioPart(part: Fields, path: string): MediaPart {
  const at = `${path}.input_audio`
  const audio = fieldsAt(part['input_audio'], at)
  const format = textAt(audio['format'], `${at}.format`)
  return media(audioAt(textAt(audio['data'], `${at}.data`), format, `${at}.data`), part, path)
}

function filePart(part: Fields, path: string): MediaPart {
  const at = `${path}.file`
  const file = fieldsAt(part['file'], at)
  const data = present(file['file_data'])
  if (data === undefined && present(file['file_id']) !== undefined)
    refuse(`${at}.file_id`, 'file_data', 'the id of a file, which cannot be passed on to this model')
  const name = present(file['filename'])
  return {
    ...media(fileAt(textAt(data, `${at}.file_data`), `${at}.file_data`), part, path),
    ...(name !== undefined && { name: textAt(name, `${at}.filename`) }),
  }
}

function media(source: MediaSource, part: Fields, path: string): MediaPart {
  return { kind: 'media', source, ...cacheOf(part, path) }
}

function fieldsIn(value: unknown): Fields | undefined {
  return typeof value === 'object' && value !== null ? (value as Fields) : undefined
}
