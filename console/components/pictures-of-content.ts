import type { CallContent, ConversationTurn } from '../api/content.ts'

/** Media types of pictures that a page shows. */
const SHOWN = /^image\/(?:png|jpeg|gif|webp)$/

/**
 * The turns of a call with its pictures. The gateway leaves their bytes out of turns; they are in the request and
 * in the answer, in the same order.
 */
export function turnsWithPictures({ conversation = [], parts }: CallContent): readonly ConversationTurn[] {
  const bodies = [parts.request_received, parts.answer_sent ?? parts.answer_received]
  const pictures = bodies.flatMap((part) => picturesIn(jsonOf(part?.text)))
  const places = conversation.flatMap((turn) => turn.parts).filter(isWithoutBytes)
  // If some of the pictures cannot be read, those that follow would be shown in the wrong place.
  if (pictures.length !== places.length) return conversation
  let next = 0
  return conversation.map((turn) => ({
    ...turn,
    parts: turn.parts.map((part) => (isWithoutBytes(part) ? { ...part, url: pictures[next++] } : part)),
  }))
}

function isWithoutBytes(part: ConversationTurn['parts'][number]): boolean {
  return part.kind === 'media' && part.url === undefined && /image/i.test(part.type)
}

function jsonOf(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? '')
  } catch {
    return undefined
  }
}

/** The URLs of pictures in a request or an answer of any protocol, in the order in which they are written. */
function picturesIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return value.startsWith('data:image/') ? [value] : []
  if (typeof value !== 'object' || value === null) return []
  const { media_type, mimeType, mime_type, data } = value as Readonly<Record<string, unknown>>
  const type = media_type ?? mimeType ?? mime_type
  if (typeof type === 'string' && typeof data === 'string' && type.startsWith('image/'))
    return [SHOWN.test(type) ? `data:${type};base64,${data}` : `data:${type}`]
  return Object.values(value).flatMap(picturesIn)
}
