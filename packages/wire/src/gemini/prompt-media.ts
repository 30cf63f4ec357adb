import type { Node, ScannedObject } from '../json/scanned-object.ts'
import type { FoundMedia } from '../prompt-levels.ts'
import {
  AUDIO_TOKENS,
  DOCUMENT_TOKENS,
  IMAGE_TOKENS,
  LARGEST_CONTEXT,
  type MediaTokens,
} from '../prompt-tokens.ts'
import { nodeOf } from './spelling.ts'

/** Files of any kind, given by URL. */
const FILE_TOKENS: MediaTokens = { max: () => LARGEST_CONTEXT, typical: () => 3000 }

/** Finds the media of a part. */
export function findMedia(scan: ScannedObject, part: Node): FoundMedia | undefined {
  const inline = nodeOf(scan, part, 'inlineData')
  const holder = inline ?? nodeOf(scan, part, 'fileData')
  if (holder === undefined) return undefined
  const type = nodeOf(scan, holder, 'mimeType')
  const name = nodeOf(scan, holder, 'displayName')
  const data = nodeOf(scan, holder, inline === undefined ? 'fileUri' : 'data')
  const stated = type === undefined ? '' : String(scan.parse(type))
  return {
    tokens: tokensOf(stated, inline !== undefined),
    data: data !== undefined && scan.kindOf(data) === 'string' ? data : undefined,
    ...(inline !== undefined && {
      type: stated,
      name: name === undefined ? undefined : String(scan.parse(name)),
    }),
  }
}

function tokensOf(type: string, isInline: boolean): MediaTokens {
  if (type.startsWith('image/')) return IMAGE_TOKENS
  if (!isInline || type.startsWith('video/')) return FILE_TOKENS
  return type.startsWith('audio/') ? AUDIO_TOKENS : DOCUMENT_TOKENS
}
