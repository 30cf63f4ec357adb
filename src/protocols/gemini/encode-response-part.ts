import { GatewayError } from '../../errors.ts'
import type { Dropped } from '../codec.ts'
import type { MediaPart, TextPart, ToolResultPart } from '../conversation.ts'
import { membersOf, objectOf } from '../json/json-text.ts'
import { parseRecord } from '../json/record.ts'
import { drop } from './dropped.ts'
import { encodeMedia } from './encode-part.ts'

/** Parts that a tool's result becomes: the response, and media that cannot be in it. */
interface WrittenResult {
  readonly response: string
  readonly media: readonly string[]
}

/**
 * Writes the result of a tool. Its text is the response where it is a JSON object, else the object's member
 * `output`, or `error` where the tool failed. Media are in the response if `holdsMedia`. Throws
 * `invalid_request` without the name of the function, which this wire requires.
 */
export function encodeResult(
  { callId, parts, isError, cache }: ToolResultPart,
  name: string | undefined,
  { holdsMedia, dropped }: { readonly holdsMedia: boolean; readonly dropped: Dropped },
): WrittenResult {
  if (name === undefined)
    throw new GatewayError('invalid_request', 'A tool result has no call with its id in an earlier turn.')
  if (cache || parts.some((part) => part.kind === 'text' && part.cache)) drop(dropped, 'cache_control')
  if (parts.some(({ kind }) => kind === 'opaque')) drop(dropped, 'content')
  const text = parts
    .filter((part): part is TextPart => part.kind === 'text')
    .map((part) => part.text)
    .join('\n')
  const media = parts
    .filter((part): part is MediaPart => part.kind === 'media')
    .map((part) => encodeMedia(part, dropped))
  const response = objectOf([
    ...membersOf({ id: callId, name }),
    ['response', responseOf(text, isError)],
    ['parts', holdsMedia && media.length > 0 ? `[${media.join(',')}]` : undefined],
  ])
  return { response: `{"functionResponse":${response}}`, media: holdsMedia ? [] : media }
}

function responseOf(text: string, isError: boolean): string {
  if (isError) return JSON.stringify({ error: text })
  const trimmed = text.trim()
  // Text of an object goes on as it is, digits and order of keys included.
  return trimmed.startsWith('{') && parseRecord(trimmed) ? trimmed : JSON.stringify({ output: text })
}
