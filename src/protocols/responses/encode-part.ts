import type { Dropped } from '../codec.ts'
import type { Cache, MediaPart, OpaquePart, TextPart } from '../conversation.ts'
import { GatewayError } from '../../errors.ts'
import { audioFormat, dataUrl } from '../media-source.ts'
import { drop } from './dropped.ts'

/** A part of content, or an item, as this wire writes it. */
export type Written = Readonly<Record<string, unknown>>

/** Encodes a part of a user's message or of a tool's output; empty where responses cannot express it. */
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

/** Content is a string where it is one text and nothing is said about it. */
export function contentOf(parts: readonly Written[]): string | readonly Written[] {
  const [first, second] = parts
  if (!first) return ''
  const isPlain = second === undefined && 'text' in first && first['prompt_cache_breakpoint'] === undefined
  return isPlain ? (first['text'] as string) : parts
}

/** Pictures and documents may be somewhere else; what is neither, or nobody knows, has to be fetched. */
export function mustFetch({ source: { kind, mediaType = '' } }: MediaPart): boolean {
  return kind === 'url' && !/^(?:image|application)\//.test(mediaType)
}

/** The provider looks the prompt up to here in its cache; how long it stays there, it decides itself. */
function breakpoint(cache: Cache | undefined): Written {
  return cache ? { prompt_cache_breakpoint: { mode: 'explicit' } } : {}
}

function encodeMedia(part: MediaPart): Written {
  const { source, name, detail } = part
  if (mustFetch(part))
    throw new GatewayError('invalid_request', 'A recording that is given by its URL could not be passed on.')
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

/** Files must have a name. */
function nameFor(mediaType: string): string {
  return mediaType === 'application/pdf' ? 'document.pdf' : 'document'
}
