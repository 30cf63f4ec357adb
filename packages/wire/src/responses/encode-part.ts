import type { Dropped } from '../codec.ts'
import type { Cache, MediaPart, OpaquePart, TextPart } from '../conversation.ts'
import { WireError } from '../wire-error.ts'
import { audioFormat, dataUrl } from '../media-source.ts'
import { drop } from './dropped-fields.ts'

/** A part of content, or an item, in the format of this dialect. */
export type Written = Readonly<Record<string, unknown>>

/** Encodes a part of a user's message or of a tool's output; an empty list if responses cannot express it. */
export function encodePart(part: TextPart | MediaPart | OpaquePart, dropped: Dropped): Written[] {
  switch (part.kind) {
    case 'text':
      return [{ type: 'input_text', text: part.text, ...breakpoint(part.cache) }]
    case 'media':
      return [{ ...encodeMedia(part), ...breakpoint(part.cache) }]
    case 'opaque':
      drop(dropped, 'content')
      return []
  }
}

/** Renders content as a string if it is a single text without other properties. */
export function contentOf(parts: readonly Written[]): string | readonly Written[] {
  const [first, second] = parts
  if (!first) return ''
  const isPlain = second === undefined && 'text' in first && first['prompt_cache_breakpoint'] === undefined
  return isPlain ? (first['text'] as string) : parts
}

/** Images and documents can be sent by URL; other media, and those of unknown type, must be fetched. */
export function mustFetch({ source: { kind, mediaType = '' } }: MediaPart): boolean {
  return kind === 'url' && !/^(?:image|application)\//.test(mediaType)
}

/** Marks that the prompt may be cached up to here. The provider decides for how long. */
function breakpoint(cache: Cache | undefined): Written {
  return cache ? { prompt_cache_breakpoint: { mode: 'explicit' } } : {}
}

function encodeMedia(part: MediaPart): Written {
  const { source, name, detail } = part
  if (mustFetch(part))
    throw new WireError('invalid_request', 'A recording that is given by its URL could not be passed on.')
  const url = source.kind === 'url' ? source.url : dataUrl(source)
  if (source.mediaType?.startsWith('image/'))
    return { type: 'input_image', image_url: url, ...(detail !== undefined && { detail }) }
  if (source.kind === 'url') return { type: 'input_file', file_url: url }
  const format = audioFormat(source.mediaType)
  if (format) return { type: 'input_audio', input_audio: { data: source.data, format } }
  if (source.mediaType.startsWith('text/'))
    return { type: 'input_text', text: Buffer.from(source.data, 'base64').toString() }
  return { type: 'input_file', filename: name ?? nameFor(source.mediaType), file_data: url }
}

/** Creates a file name, which the dialect requires. */
function nameFor(mediaType: string): string {
  return mediaType === 'application/pdf' ? 'document.pdf' : 'document'
}
