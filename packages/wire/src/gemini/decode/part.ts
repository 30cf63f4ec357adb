import type { DroppedFields } from '../../codec.ts'
import type { MediaPart, OpaquePart, TextPart, ThinkingPart } from '../../conversation.ts'
import { refuseField } from '../../field-check.ts'
import { type Fields, requireText } from '../../field.ts'
import { readInlineMedia, readMediaUrl } from '../../media-source.ts'
import { reportDropped } from '../dropped-fields.ts'
import { readSignature } from '../signature.ts'
import { memberInEitherSpelling } from '../field-spelling.ts'

/** A part of a turn that is neither a function call nor a function response. */
type PlainPart = TextPart | MediaPart | ThinkingPart | OpaquePart

/** Members of parts that exist only in Gemini: code that the model ran, and uses of built-in tools. */
export const GEMINI_ONLY_PARTS = [
  'executableCode',
  'codeExecutionResult',
  'toolCall',
  'toolResponse',
] as const

/** Matches URLs of files that only Google's servers can read. */
const FILES_OF_GOOGLE =
  /^(?:gs:|https?:\/\/generativelanguage\.googleapis\.com\/|https?:\/\/(?:www\.|m\.)?youtube\.com\/|https?:\/\/youtu\.be\/)/i

/**
 * Reads a text, a thought, media, or a part that only this protocol has. The signature of a text becomes a
 * part after it, as in the provider's streams. A part of an unknown kind is dropped and reported. Throws
 * `invalid_request` with the path of an invalid value.
 */
export function decodePlainPart(part: Fields, path: string, dropped: DroppedFields): PlainPart[] {
  const signature = memberInEitherSpelling(part, 'thoughtSignature')
  const signed = signature === undefined ? '' : requireText(signature, `${path}.thoughtSignature`)
  if (GEMINI_ONLY_PARTS.some((name) => memberInEitherSpelling(part, name) !== undefined))
    return [{ kind: 'opaque', protocol: 'gemini', value: part }]
  const text = memberInEitherSpelling(part, 'text')
  const media = decodeMedia(part, path, dropped)
  if (text === undefined && !media && signed === '') {
    reportDropped(dropped, 'parts')
    return []
  }
  const written = text === undefined ? '' : requireText(text, `${path}.text`)
  if (part['thought'] === true && !media) {
    if (signed !== '') return [readSignature(signed, written)]
    return written === '' ? [] : [{ kind: 'thinking', text: written }]
  }
  const plain: PlainPart[] = media ? [media] : written === '' ? [] : [{ kind: 'text', text: written }]
  return signed === '' ? plain : [...plain, readSignature(signed, '', 'text')]
}

/** Reads media, given as data or as a URL; undefined if the part contains none. */
export function decodeMedia(part: Fields, path: string, dropped: DroppedFields): MediaPart | undefined {
  const inline = memberInEitherSpelling(part, 'inlineData')
  const file = memberInEitherSpelling(part, 'fileData')
  if (inline === undefined && file === undefined) return undefined
  if (memberInEitherSpelling(part, 'videoMetadata') !== undefined)
    reportDropped(dropped, 'parts.videoMetadata')
  if (memberInEitherSpelling(part, 'mediaResolution') !== undefined)
    reportDropped(dropped, 'parts.mediaResolution')
  const at = `${path}.${inline === undefined ? 'fileData' : 'inlineData'}`
  const fields = fieldsOf(inline ?? file, at)
  const type = memberInEitherSpelling(fields, 'mimeType')
  const mediaType = type === undefined ? undefined : requireText(type, `${at}.mimeType`)
  const name = memberInEitherSpelling(fields, 'displayName')
  const named = name === undefined ? {} : { name: requireText(name, `${at}.displayName`) }
  if (inline !== undefined) {
    const data = requireText(memberInEitherSpelling(fields, 'data'), `${at}.data`)
    return { kind: 'media', source: readInlineMedia(mediaType, data, `${at}.data`), ...named }
  }
  const uri = requireText(memberInEitherSpelling(fields, 'fileUri'), `${at}.fileUri`)
  if (FILES_OF_GOOGLE.test(uri))
    refuseField(`${at}.fileUri`, 'an address that others can read too', 'one that only Google can read')
  return { kind: 'media', source: readMediaUrl(uri, `${at}.fileUri`, mediaType), ...named }
}

function fieldsOf(value: unknown, path: string): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Fields)
    : refuseField(path, 'an object', 'something else')
}
