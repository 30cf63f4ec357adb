import { WireError } from '../wire-error.ts'
import type { Dropped } from '../codec.ts'
import type { MediaPart, TextPart } from '../conversation.ts'
import { drop } from './dropped-fields.ts'

/** Encodes a text as a part. */
export function encodeText({ text, cache }: TextPart, dropped: Dropped): string {
  if (cache) drop(dropped, 'cache_control')
  return JSON.stringify({ text })
}

/** Encodes media as a part. Media given by URL have been fetched before. */
export function encodeMedia({ source, name, detail, cache }: MediaPart, dropped: Dropped): string {
  if (source.kind === 'url')
    throw new WireError('invalid_request', 'A file that is given by its URL could not be passed on.')
  if (cache) drop(dropped, 'cache_control')
  if (detail !== undefined) drop(dropped, 'image_url.detail')
  if (name !== undefined) drop(dropped, 'title')
  return JSON.stringify({ inlineData: { mimeType: source.mediaType, data: source.data } })
}
