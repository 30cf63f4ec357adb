import { applyEdits } from './json/json-edit.ts'
import type { Node, ScannedObject } from './json/scanned-object.ts'

/** What answers with texts but without a dialect are about: pictures, or a recording. */
export type MediaAnswer = 'images' | 'transcript'

/** Offsets of the JSON text of a string, with the quotes. */
export interface TextSpan {
  readonly from: number
  readonly to: number
}

/** The texts of a whole answer. */
export interface MediaTexts {
  /** Texts of their own. */
  readonly texts: readonly TextSpan[]
  /** Lists of which each repeats the text in parts: segments, words. */
  readonly lists: readonly (readonly TextSpan[])[]
  /** Offsets of lists that repeat the text token by token, or by numbers of tokens. */
  readonly tokens: readonly (readonly [from: number, to: number, instead: string])[]
}

/** Members of an answer that are lists of parts of its text, with the member that has the part. */
const LISTS = [
  ['segments', 'text'],
  ['words', 'word'],
] as const

/** Members of a transcript that repeat its text. */
const LISTED = ['segments', 'words', 'logprobs'] as const

/** Finds the texts of a whole answer about pictures, or of a transcript in JSON. */
export function mediaTexts(scan: ScannedObject, about: MediaAnswer): MediaTexts {
  if (about === 'images') {
    const texts = objectsIn(scan, 'data').flatMap((one) => stringOf(scan, one, 'revised_prompt'))
    return { texts, lists: [], tokens: [] }
  }
  const text = scan.span('text')
  const logprobs = scan.span('logprobs')
  return {
    texts: text && scan.kindOf(text.node) === 'string' ? [{ from: text.start, to: text.end }] : [],
    lists: LISTS.map(([list, member]) => objectsIn(scan, list).flatMap((one) => stringOf(scan, one, member))),
    tokens: [
      ...(logprobs && scan.isContainer(logprobs.node) ? [[logprobs.start, logprobs.end, '[]'] as const] : []),
      ...objectsIn(scan, 'segments').flatMap((one) => {
        const node = scan.memberOf(one, 'tokens')
        if (node === undefined || scan.kindOf(node) !== 'array') return []
        return [[scan.startOf(node), scan.endOf(node), '[]'] as const]
      }),
    ],
  }
}

/** A whole answer without its content: without pictures, or with an empty transcript. */
export function refusedMedia(scan: ScannedObject, about: MediaAnswer): Buffer {
  const replace = new Map([about === 'images' ? ['data', '[]'] : ['text', '""']])
  if (about === 'transcript') for (const name of LISTED) if (scan.has(name)) replace.set(name, '[]')
  return applyEdits(scan.bytes, scan, { remove: [], replace })
}

/** A transcript whose text was changed as a whole, without what repeated it in parts. */
export function withoutParts(scan: ScannedObject): Buffer {
  const replace = new Map(LISTED.flatMap((name) => (scan.has(name) ? [[name, '[]'] as const] : [])))
  return applyEdits(scan.bytes, scan, { remove: [], replace })
}

/** A text in an event of a stream. */
export interface MediaEventText extends TextSpan {
  /** The text that it is a piece of; undefined if it is whole. */
  readonly piece?: 'text' | 'segment'
}

/** Finds the texts in an event of a stream of pictures or of a transcript. */
export function mediaEventTexts(
  scan: ScannedObject,
): Pick<MediaTexts, 'tokens'> & { readonly texts: readonly MediaEventText[]; readonly isLast: boolean } {
  const type = scan.value('type')
  const logprobs = scan.span('logprobs')
  const tokens =
    logprobs && scan.kindOf(logprobs.node) === 'array' ? [[logprobs.start, logprobs.end, '[]'] as const] : []
  const [name, piece] = EVENT_TEXTS[typeof type === 'string' ? type : ''] ?? ['revised_prompt']
  const found = scan.span(name)
  const isText = found && scan.kindOf(found.node) === 'string'
  return {
    texts: isText ? [{ from: found.start, to: found.end, ...(piece && { piece }) }] : [],
    tokens,
    isLast: type === 'transcript.text.done',
  }
}

/** Where events of a transcript have their texts. */
const EVENT_TEXTS: Readonly<
  Record<string, readonly [name: string, piece?: NonNullable<MediaEventText['piece']>]>
> = {
  'transcript.text.delta': ['delta', 'text'],
  'transcript.text.segment': ['text', 'segment'],
  'transcript.text.done': ['text'],
}

/** Lines of subtitles that are a text. */
export interface SubtitleLines {
  readonly lines: readonly string[]
  /** Positions in `lines`. */
  readonly texts: readonly number[]
}

/** The lines of a transcript, each with its end. Without times, as in plain text, all of it is one. */
export function subtitleLines(text: string): SubtitleLines {
  if (!text.includes('-->')) return { lines: [text], texts: [0] }
  const lines = text.split(/(?<=\n)/)
  const texts: number[] = []
  let isCue = false
  for (const [index, line] of lines.entries()) {
    if (line.includes('-->')) isCue = true
    else if (line.trim() === '') isCue = false
    else if (isCue) texts.push(index)
  }
  return { lines, texts }
}

function objectsIn(scan: ScannedObject, name: string): Node[] {
  const member = scan.span(name)
  if (!member || scan.kindOf(member.node) !== 'array') return []
  return scan.elements(member.node).filter((node) => scan.kindOf(node) === 'object')
}

function stringOf(scan: ScannedObject, object: Node, name: string): TextSpan[] {
  const node = scan.memberOf(object, name)
  if (node === undefined || scan.kindOf(node) !== 'string') return []
  return [{ from: scan.startOf(node), to: scan.endOf(node) }]
}
