import { EMBEDDINGS_ANSWER } from './embeddings/shape.ts'
import { GEMINI_EMBED_ANSWER } from './gemini/shape.ts'
import { applyTextChanges, type TextChange } from './found-texts.ts'
import { RESPONSE_LIMITS, scanObject } from './json/json-scan.ts'
import type { Node, ScannedObject } from './json/scanned-object.ts'
import { IMAGES_ANSWER, TRANSCRIPT_ANSWER } from './media/shape.ts'
import { type AnswerTexts, answerTexts } from './text-finder.ts'
import type { Shape } from './shape/define-shape.ts'
import { VectorReader } from './vectors.ts'

/**
 * Responses with texts that guards check, although they are not conversations: images, the transcript of a
 * recording, or embeddings of OpenAI's or of Gemini's API.
 */
export type MediaAnswerKind = 'images' | 'transcript' | VectorKind

type VectorKind = keyof typeof VECTORS

/** The member that contains a vector, by the kind of a response. */
const VECTORS = { embeddings: 'embedding', 'gemini embeddings': 'values' } as const

function isVectorKind(about: MediaAnswerKind): about is VectorKind {
  return Object.hasOwn(VECTORS, about)
}

/** Whether all responses of a kind are JSON, whatever their content type says. */
export function isAlwaysJson(about: MediaAnswerKind): boolean {
  return about === 'images' || isVectorKind(about)
}

/** A complete response in JSON, as guards search it. */
export interface SearchedAnswer {
  /** The response, with an empty list in place of each vector. */
  readonly scan: ScannedObject
  /** The changes that put the vectors back. */
  readonly vectors: readonly TextChange[]
}

/**
 * Reads a complete response in JSON. Lists of numbers are left out, because vectors have millions of them. Throws if the response is not a JSON object.
 */
export function searchedAnswer(bytes: Buffer, about: MediaAnswerKind): SearchedAnswer {
  if (!isVectorKind(about)) return { scan: scanObject(bytes, RESPONSE_LIMITS), vectors: [] }
  const pieces: Buffer[] = []
  const vectors: TextChange[] = []
  let length = 0
  const add = (piece: Buffer): void => {
    pieces.push(piece)
    length += piece.length
  }
  const reader = new VectorReader(VECTORS[about], {
    onVector({ form, text }) {
      if (form !== 'numbers') return add(text)
      vectors.push({ from: length, to: length + EMPTY_LIST.length, text: text.toString('latin1') })
      add(EMPTY_LIST)
    },
    onOther: add,
  })
  reader.push(bytes)
  reader.end()
  return { scan: scanObject(Buffer.concat(pieces, length), RESPONSE_LIMITS), vectors }
}

const EMPTY_LIST = Buffer.from('[]')

/** Applies changes of what `searchedAnswer` has read to the response. Returns `bytes` if there are none. */
export function changedAnswer(
  bytes: Buffer,
  { scan, vectors }: SearchedAnswer,
  changes: readonly TextChange[],
): Buffer {
  if (changes.length === 0) return bytes
  return applyTextChanges(
    scan.bytes,
    [...changes, ...vectors].toSorted((a, b) => a.from - b.from),
  )
}

/** Offsets of a JSON string, including its quotes. */
export interface TextSpan {
  readonly from: number
  readonly to: number
}

/** The texts of a complete response. */
export interface MediaTexts {
  /** Texts that do not repeat another text, in the order of their bytes. */
  readonly texts: readonly TextSpan[]
  /** Lists that each repeat the whole text in parts: the segments and the words of a transcript. */
  readonly lists: readonly (readonly TextSpan[])[]
  /**
   * Offsets of lists that repeat the text token by token or as token ids, and the JSON that replaces a list
   * if the text is changed.
   */
  readonly tokens: readonly (readonly [from: number, to: number, instead: string])[]
}

/**
 * Members of a transcript that repeat its text in parts, each with the name of the member that contains the
 * text of a part.
 */
const LISTS = [
  ['segments', 'text'],
  ['words', 'word'],
] as const

/** Members of a transcript that repeat its text and are removed when the text is changed. */
const LISTED = ['segments', 'words', 'logprobs'] as const

/** Finds the texts of a complete response in JSON. */
export function mediaTexts(scan: ScannedObject, about: MediaAnswerKind): MediaTexts {
  const lists = (about === 'transcript' ? LISTS : []).map(([list, member]) =>
    objectsIn(scan, list).flatMap((one) => stringOf(scan, one, member)),
  )
  return { ...textsBeside(scan, about, lists.flat()), lists }
}

const SHAPES: Readonly<Record<MediaAnswerKind, Shape>> = {
  images: IMAGES_ANSWER,
  transcript: TRANSCRIPT_ANSWER,
  embeddings: EMBEDDINGS_ANSWER,
  'gemini embeddings': GEMINI_EMBED_ANSWER,
}

/** No reasoning is signed; lists of tokens stay lists. */
const READING = { signsReasoning: false, emptyTokens: '[]' } as const

/** All texts of a response that are not among those, also where the API does not describe them. */
function textsBeside(
  scan: ScannedObject,
  about: MediaAnswerKind,
  known: readonly TextSpan[],
): Pick<MediaTexts, 'texts' | 'tokens'> {
  const starts = new Set(known.map(({ from }) => from))
  const { texts, repeating } = answerTexts(scan, SHAPES[about], READING)
  return { texts: texts.filter(({ from }) => !starts.has(from)), tokens: repeating }
}

/** The members that a blocked response has no content in, by its kind, and what they have instead. */
const EMPTIED: Readonly<Record<MediaAnswerKind, Readonly<Record<string, string>>>> = {
  images: { data: '[]' },
  transcript: Object.fromEntries(LISTED.map((name) => [name, '[]'])),
  embeddings: { data: '[]' },
  'gemini embeddings': { embedding: '{"values":[]}', embeddings: '[]' },
}

/**
 * Replaces the content of a complete response that a guard has blocked: no images or vectors, or an empty transcript, and
 * no other text.
 */
export function emptiedMediaAnswer(scan: ScannedObject, about: MediaAnswerKind): Buffer {
  const emptied = emptiedMembers(scan, EMPTIED[about])
  const texts = mediaTexts(scan, about).texts.map(({ from, to }): TextChange => ({ from, to, text: '""' }))
  return applyTextChanges(
    scan.bytes,
    withoutOverlaps(emptied, texts).toSorted((a, b) => a.from - b.from),
  )
}

/** Changes of a transcript that also leave out the lists which repeat its text, because the text is changed. */
export function withoutTranscriptParts(scan: ScannedObject, changes: readonly TextChange[]): TextChange[] {
  return withoutOverlaps(emptiedMembers(scan, EMPTIED.transcript), changes)
}

function emptiedMembers(scan: ScannedObject, instead: Readonly<Record<string, string>>): TextChange[] {
  return Object.entries(instead).flatMap(([name, text]) => {
    const member = scan.span(name)
    return member ? [{ from: member.start, to: member.end, text }] : []
  })
}

/** Changes of whole members, and those of `changes` that are not within these members. */
function withoutOverlaps(ofMembers: readonly TextChange[], changes: readonly TextChange[]): TextChange[] {
  const isLeft = ({ from }: TextChange): boolean =>
    !ofMembers.some((one) => one.from <= from && from < one.to)
  return [...ofMembers, ...changes.filter(isLeft)]
}

/** Finds the texts in an event of a stream of images or of a transcript, each with its path from the root. */
export function textsOfMediaEvent(scan: ScannedObject): AnswerTexts {
  const type = scan.value('type')
  const shape = TRANSCRIPT_EVENTS.has(typeof type === 'string' ? type : '')
    ? TRANSCRIPT_ANSWER
    : IMAGES_ANSWER
  return answerTexts(scan, shape, { ...READING, hasWays: true })
}

const TRANSCRIPT_EVENTS: ReadonlySet<string> = new Set([
  'transcript.text.delta',
  'transcript.text.segment',
  'transcript.text.done',
])

/** A transcript split into lines. Some lines are texts; the others are numbers and times. */
export interface SubtitleLines {
  readonly lines: readonly string[]
  /** Indexes in `lines` of the lines that are texts. */
  readonly texts: readonly number[]
}

const TIMES =
  /^\s*(?:\d+:)?\d\d:\d\d[.,]\d{3}\s+-->\s+(?:\d+:)?\d\d:\d\d[.,]\d{3}(?:\s+(?:align|line|position|region|size|vertical):[\w%,.-]{1,24})*\s*$/
const CUE_NUMBER = /^\s*\d{1,6}\s*$/
const HEADER = /^\ufeff?WEBVTT\s*$/

/**
 * Splits a transcript into lines, which include their line ends. A transcript without times, such as plain
 * text, is one line.
 */
export function subtitleLines(text: string): SubtitleLines {
  const lines = text.split(/(?<=\n|\r(?!\n))/)
  const isTimes = lines.map((line) => TIMES.test(line))
  if (!isTimes.includes(true)) return { lines: [text], texts: [0] }
  const texts: number[] = []
  for (const [index, line] of lines.entries()) {
    const isNumber = CUE_NUMBER.test(line) && isTimes[index + 1] === true
    const isHeader = index === 0 && HEADER.test(line)
    if (!isTimes[index] && !isNumber && !isHeader && line.trim() !== '') texts.push(index)
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
