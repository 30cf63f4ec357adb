import type { Dropped } from '../codec.ts'
import type { MediaPart, OpaquePart, TextPart } from '../conversation.ts'
import { WireError } from '../wire-error.ts'
import { cacheControl } from './cache-control.ts'
import { drop } from './dropped-fields.ts'
import { audioFormat, dataUrl } from '../media-source.ts'

/** Part of a message's content in chat's format. */
export type ChatPart = Readonly<Record<string, unknown>>

/** Encodes a part of content; returns an empty list if chat cannot express it. */
export function encodePart(part: TextPart | MediaPart | OpaquePart, dropped: Dropped): ChatPart[] {
  switch (part.kind) {
    case 'text':
      return [{ type: 'text', text: part.text, ...cacheControl(part.cache) }]
    case 'media':
      return [{ ...encodeMedia(part, dropped), ...cacheControl(part.cache) }]
    case 'opaque':
      if (part.protocol === 'chat') return [part.value as ChatPart]
      drop(dropped, 'content')
      return []
  }
}

/** Renders content as a string if it is a single text without other properties. */
export function contentOf(parts: readonly ChatPart[]): string | readonly ChatPart[] {
  const [first, second] = parts
  if (!first) return ''
  const isPlain = second === undefined && first['type'] === 'text' && first['cache_control'] === undefined
  return isPlain ? (first['text'] as string) : parts
}

/**
 * Reports whether media must be fetched: chat accepts only images and videos by URL. A URL without a type is
 * treated as an image.
 */
export function mustFetch({ source: { kind, mediaType = 'image/*' } }: MediaPart): boolean {
  return kind === 'url' && !isPicture(mediaType) && !isVideo(mediaType)
}

function encodeMedia(part: MediaPart, dropped: Dropped): ChatPart {
  const { source, name, detail } = part
  if (mustFetch(part))
    throw new WireError('invalid_request', 'A document that is given by its URL could not be passed on.')
  const url = source.kind === 'url' ? source.url : dataUrl(source)
  if (source.kind === 'inline' && isFile(source.mediaType))
    return { type: 'file', file: { filename: name ?? nameFor(source.mediaType), file_data: url } }
  if (name !== undefined) drop(dropped, 'title')
  if (isVideo(source.mediaType)) return { type: 'video_url', video_url: { url } }
  if (source.kind === 'url' || isPicture(source.mediaType))
    return {
      type: 'image_url',
      image_url: { url, ...(detail !== undefined && { detail: DETAILS.get(detail) ?? detail }) },
    }
  const format = audioFormat(source.mediaType)
  if (format) return { type: 'input_audio', input_audio: { data: source.data, format } }
  return { type: 'text', text: Buffer.from(source.data, 'base64').toString() }
}

/** Values of `detail` that have another name in chat. */
const DETAILS: ReadonlyMap<string, string> = new Map([['original', 'high']])

/** Reports whether chat has no kind of part for this media type, so that it is sent as a file. */
function isFile(mediaType: string): boolean {
  const isText = mediaType.startsWith('text/')
  return !isText && !isPicture(mediaType) && !isVideo(mediaType) && audioFormat(mediaType) === undefined
}

/** Creates a file name, which chat requires. */
function nameFor(mediaType: string): string {
  return mediaType === 'application/pdf' ? 'document.pdf' : 'document'
}

function isPicture(mediaType: string | undefined): boolean {
  return mediaType?.startsWith('image/') === true
}

function isVideo(mediaType: string | undefined): boolean {
  return mediaType?.startsWith('video/') === true
}
