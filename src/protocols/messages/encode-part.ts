import { GatewayError } from '../../errors.ts'
import type { SearchPart } from '../provider-search.ts'
import type { MediaPart, Part, ToolResultPart } from '../conversation.ts'
import { inputObject } from '../tool-input.ts'
import { writeCache } from './cache-mark.ts'

const DEFAULT_DOCUMENT = 'application/pdf'

/**
 * Encodes a part as the JSON text of its block. A tool's input keeps the text that the model wrote. Throws
 * `invalid_request` if that is not a JSON object, which messages requires.
 */
export function encodePart(part: Exclude<Part, SearchPart>): string {
  switch (part.kind) {
    case 'text':
      return JSON.stringify({ type: 'text', text: part.text, ...writeCache(part.cache) })
    case 'media':
      return encodeMedia(part)
    case 'thinking':
      return JSON.stringify({ type: 'thinking', thinking: part.text, signature: part.proof?.value ?? '' })
    case 'tool-call': {
      const input = inputObject(part.input)
      if (input === undefined)
        throw new GatewayError(
          'invalid_request',
          `Invalid arguments of the tool call ${JSON.stringify(part.id.slice(0, 64))}: expected the text of a JSON object.`,
        )
      const head = JSON.stringify({ type: 'tool_use', id: wireId(part.id), name: part.name })
      return joined(head, `"input":${input}`, writeCache(part.cache))
    }
    case 'tool-result':
      return encodeResult(part)
    case 'opaque':
      return JSON.stringify(part.value)
  }
}

function encodeResult({ callId, parts, isError, cache }: ToolResultPart): string {
  const head = JSON.stringify({ type: 'tool_result', tool_use_id: wireId(callId) })
  const [first] = parts
  const isPlain = parts.length === 1 && first?.kind === 'text' && !first.cache
  const content = isPlain ? JSON.stringify(first.text) : `[${parts.map(encodePart).join(',')}]`
  return joined(head, parts.length > 0 ? `"content":${content}` : undefined, {
    ...(isError && { is_error: true }),
    ...writeCache(cache),
  })
}

/** Encodes media: an image as an image, everything else as a document of its type, plain text as text. */
function encodeMedia({ source, name, cache }: MediaPart): string {
  const { mediaType } = source
  const isImage = mediaType?.startsWith('image/') ?? source.kind === 'url'
  return JSON.stringify({
    type: isImage ? 'image' : 'document',
    source: encodeSource(source),
    ...(!isImage && name !== undefined && { title: name }),
    ...writeCache(cache),
  })
}

function encodeSource(source: MediaPart['source']): object {
  if (source.kind === 'url') return { type: 'url', url: source.url }
  const mediaType = source.mediaType || DEFAULT_DOCUMENT
  if (mediaType.split(';')[0]?.trim() === 'text/plain') {
    const text = Buffer.from(source.data, 'base64').toString()
    if (Buffer.from(text).equals(Buffer.from(source.data, 'base64')))
      return { type: 'text', media_type: 'text/plain', data: text }
  }
  return { type: 'base64', media_type: mediaType, data: source.data }
}

/** Adds members to an object's text: one that is JSON text, and others given as values. */
function joined(object: string, member: string | undefined, more: object): string {
  const rest = JSON.stringify(more).slice(1, -1)
  return (
    [object.slice(0, -1), member, rest].filter((text) => text !== undefined && text !== '').join(',') + '}'
  )
}

/**
 * Replaces characters in other providers' ids that messages upstreams refuse. The ids of a call and its
 * result remain equal.
 */
function wireId(id: string): string {
  return /^[\w-]+$/.test(id) ? id : id.replaceAll(/[^\w-]/g, '_') || '_'
}
