import { decodePercent, encodePercent } from './media-source.ts'
import { isSealed, MAX_TERM } from './protocol-words.ts'
import {
  type FileFacts,
  hasBinarySignature,
  isStatedText,
  readTextFile,
  SIGNATURE_BYTES,
  type TextFile,
} from './text-file.ts'

export type { FileFacts } from './text-file.ts'

/**
 * How the value of a request's string is read. A `term` is a word of a protocol, `sealed` a signature or another
 * value that only its maker can read, `media` the content or the address of a file, all others are a `text`.
 */
export type ValueKind = 'text' | 'term' | 'sealed' | 'media'

/** A part of a value that guards check as a text. */
export interface ValueReading {
  readonly text: string
  /** Returns the whole value with another text in this part. */
  write(text: string): string
}

/**
 * Whether the JSON string between two offsets may be a file, so that it has to be read by `readingsOf`. Any other is a
 * text as it stands.
 */
export function mayBeFile(
  bytes: Buffer,
  { from, to, kind }: { readonly from: number; readonly to: number; readonly kind: ValueKind },
): boolean {
  if (kind === 'media' || kind === 'sealed') return true
  if (to - from < MIN_FILE) return false
  const beginning = bytes.toString('latin1', from + 1, from + MIN_FILE)
  if (DATA.test(beginning) || /^\s*[[{"\\]/.test(beginning)) return true
  if (to - from > LONG || bytes.subarray(from, to).includes(ESCAPED_QUOTE)) return true
  let isWhole = true
  let run = 0
  for (let at = from + 1; at < to - 1; at += 1) {
    const byte = bytes[at] as number
    if (IS_WORD[byte] === 1) {
      run += 1
      if (run === MIN_WORD) return true
      continue
    }
    if (byte === COLON && SCHEME.test(bytes.toString('latin1', Math.max(from, at - 4), at))) return true
    isWhole &&= MAY_BE_BASE64[byte] === 1
    run = 0
  }
  return isWhole
}

/** Length of texts that are looked at in turns, by `filesWithin`. */
const LONG = 4096
/** A quote as in JSON within a text. */
const ESCAPED_QUOTE = '\\"'
const QUOTE = 0x22
const COLON = 0x3a
const SCHEME = /data$/i
/** Minimum length of base64 that stands between other words. */
const MIN_WORD = 24
const IS_WORD = Uint8Array.from({ length: 256 }, (_, byte) =>
  /[\w+/-]/.test(String.fromCharCode(byte)) ? 1 : 0,
)
/** Bytes that base64 in a JSON string may contain, with the escapes that it may have. */
const MAY_BE_BASE64 = Uint8Array.from({ length: 256 }, (_, byte) =>
  /[\w+/=\\ -]/.test(String.fromCharCode(byte)) ? 1 : 0,
)

/** Work that is done in steps, between which the caller may pause. */
export type Steps<Result> = Generator<undefined, Result>

/**
 * Number of characters that are read in a step. Expressions read a long value in such parts also because they need memory
 * for each repetition, and fail at some millions.
 */
const STEP = 2048

/** Matches what is not base64 of either alphabet, apart from line breaks. */
const NO_BASE64 = /[^\w+/=\r\n-]|=[^=\r\n]/
/** The same where it may be spaced in any way. */
const NO_SPACED_BASE64 = /[^\w+/=\s-]/
/** Matches the beginning of a data URL up to its comma, in the form that RFC 2397 describes. */
const DATA_URL = /^data:(?:[\w.+-]+\/[\w.+*-]+)?(?:; ?[\w-]+=(?:[\w.+-]+|"[\w.+-]*"))*(?:; ?base64)?,$/i
const DATA = /^\s*data:/i
/** Maximum length of a data URL up to its comma. */
const MAX_HEADER = 1024
/**
 * A value that looks like base64 but is no file that can be recognised is checked as it stands, too, up to this length:
 * it may be a key.
 */
const MAX_UNKNOWN = 4096
/** A text that is base64 as a whole is read as a file if it has at least this length. */
const MIN_FILE = 16
/** Minimum length of the lines of base64 that has several. */
const MIN_LINE = 57

/** Reads a part of a value; undefined if the value has no such part. */
export type Reading = (value: string, facts: FileFacts) => Steps<ValueReading | undefined>

/**
 * The parts of a value that guards check, in the order in which they are checked. Each reads the value as the
 * part before has left it. `docs/guards.md: Files of text`.
 */
export function readingsOf(value: string, kind: ValueKind): readonly Reading[] {
  if (kind === 'sealed' && isSealed(value)) return NOTHING
  if (isDataUrl(value)) return DATA_READINGS
  if (kind === 'media') return MEDIA_READINGS
  return PLAIN
}

/** A file of text within a value, and where it is. */
export interface FileWithin {
  readonly from: number
  readonly to: number
  readonly text: string
  /** Returns the file with another text, as it is written in the value. */
  write(text: string): string
}

/** The length of what looks like a file at a position of a value; 0 if nothing does. */
type FileFinder = (value: string, from: number) => Steps<number>

/** Matches so many characters of a kind as are read in a step. */
function inStep(characters: string): RegExp {
  return new RegExp(`(?:${characters}){0,${STEP}}`, 'y')
}

const URL_HEAD = /data:[^,]{0,256}?base64\s{0,4},\s{0,4}(?=[\w+/=%-]|\\{1,255}[/nr])/iy
const URL_LETTERS = inStep(String.raw`[\w+/=%-]|\\{1,255}[/nr]`)
const PERCENT_HEAD =
  /data:[\w.+/-]{0,64}(?:;[^,\s"\\]{0,128})?,[\w!$&*+,./:;=?@~-]{0,256}%(?=[\w!$&*+,./:;=?@~%-])/iy
const PERCENT_LETTERS = inStep('[\\w!$&*+,./:;=?@~%-]')
const QUOTED_HEAD = /(?<=")(?:[\w+/=-]|\\{1,255}[/nr]){16}/y
const QUOTED_LETTERS = inStep(String.raw`[\w+/=-]|\\{1,255}[/nr]`)
const QUOTED_END = /\\{0,255}(?:"|$)/y
const LINE_START = /(?<=^|[\r\n])[\w+/]{16}/y
const LINE_LETTERS = inStep(String.raw`[\w+/]`)
const LINE_END = /={0,2}(?=[\r\n]|$)/y
const LINE_BREAK = /\r?\n/y
const WORD_START = /(?:(?<![\\\w+/-])|(?<=\\[nrt]))[\w+/-]{24}/y
const WORD_LETTERS = inStep(String.raw`[\w+/-]`)
const PADDING = /={0,2}/y

/**
 * Finds a data URL in a text, a string of JSON that is base64 as a whole, at any depth of escapes, lines of base64,
 * and words that may be base64 between others. The text may be cut off.
 */
function* fileInText(value: string, from: number): Steps<number> {
  const head = matchLength(URL_HEAD, value, from)
  if (head > 0) return (yield* endOfRun(URL_LETTERS, value, from + head)) - from
  const percent = matchLength(PERCENT_HEAD, value, from)
  if (percent > 0) return (yield* endOfRun(PERCENT_LETTERS, value, from + percent)) - from
  if (matchLength(QUOTED_HEAD, value, from) > 0) {
    const end = yield* endOfRun(QUOTED_LETTERS, value, from)
    if (matches(QUOTED_END, value, end)) return end - from
  }
  if (matchLength(LINE_START, value, from) > 0) {
    const length = yield* linesIn(value, from)
    if (length > 0) return length
  }
  return matchLength(WORD_START, value, from) > 0 ? yield* wordIn(value, from) : 0
}

/** The length of lines of base64, of which the last may be shorter. */
function* linesIn(value: string, from: number): Steps<number> {
  let length = 0
  for (let at = from; ; ) {
    const end = yield* endOfRun(LINE_LETTERS, value, at)
    if (end - at < MIN_FILE || !matches(LINE_END, value, end)) return length
    length = end + matchLength(LINE_END, value, end) - from
    const next = matchLength(LINE_BREAK, value, end)
    if (next === 0 || end - at < MIN_LINE) return length
    at = end + next
  }
}

function* wordIn(value: string, from: number): Steps<number> {
  const end = yield* endOfRun(WORD_LETTERS, value, from)
  return end + matchLength(PADDING, value, end) - from
}

/** Finds a piece of base64 between other characters, as in an envelope. */
function* pieceIn(value: string, from: number): Steps<number> {
  const length = yield* wordIn(value, from)
  return length < MIN_FILE ? 0 : length
}

/** The position up to which a value has characters of a kind. */
function* endOfRun(inOneStep: RegExp, value: string, from: number): Steps<number> {
  for (let at = from; ; yield undefined) {
    const length = matchLength(inOneStep, value, at)
    at += length
    if (length < STEP) return at
  }
}

function matchLength(pattern: RegExp, value: string, at: number): number {
  pattern.lastIndex = at
  return pattern.exec(value)?.[0].length ?? 0
}

function matches(pattern: RegExp, value: string, at: number): boolean {
  pattern.lastIndex = at
  return pattern.test(value)
}

/**
 * The files of text in base64 within a value: in a text, such as JSON, or in a signature. They are read from the value
 * as `readingsOf` has left it. Undefined stands for a piece that is none, so that the caller can pause.
 */
export function* filesWithin(value: string, kind: ValueKind): Generator<FileWithin | undefined, void> {
  if (kind === 'sealed' && isSealed(value)) return yield* filesFoundBy(pieceIn, value)
  const isUrl = isData(value)
  if (isUrl || kind === 'media') {
    const isFile = isUrl ? yield* isProperDataUrl(value) : yield* isBase64(value)
    if (!isFile) yield* filesFoundBy(pieceIn, value)
    return
  }
  const letters = yield* wholeBase64(value)
  if (letters === undefined) return yield* filesFoundBy(fileInText, value)
  const file = yield* fileIn(letters, NONE)
  if (file) yield { ...file, from: 0, to: value.length }
}

function* filesFoundBy(lengthOf: FileFinder, value: string): Generator<FileWithin | undefined, void> {
  let run = 0
  for (let at = 0; at < value.length; at += 1) {
    if (at % STEP === STEP - 1) yield undefined
    const unit = value.charCodeAt(at)
    run = unit < IS_WORD.length && IS_WORD[unit] === 1 ? run + 1 : 0
    const start = run === 0 ? startBefore(value, at, unit) : run === MIN_FILE ? at + 1 - MIN_FILE : undefined
    if (start === undefined) continue
    let from = start
    let length = yield* lengthOf(value, from)
    // What follows an escape such as `\n` may begin with its letter.
    if (length === 0 && value[start - 1] === '\\') length = yield* lengthOf(value, (from = start + 1))
    if (length === 0) continue
    yield yield* fileWithin(value.slice(from, from + length), from)
    at = from + length - 1
    run = 0
  }
}

/** Where a file may begin, other than with a long word, that is known by the character at a position. */
function startBefore(value: string, at: number, unit: number): number | undefined {
  if (unit === QUOTE) return at + 1
  return unit === COLON && SCHEME.test(value.slice(Math.max(0, at - 4), at)) ? at - 4 : undefined
}

/** Reads a piece of a value that looks like a file, and begins at this position. */
function* fileWithin(piece: string, from: number): Steps<FileWithin | undefined> {
  const plain = yield* withoutEscapes(piece)
  const file = yield* isData(plain) ? fileInUrl(plain, NONE) : fileIn(plain, NONE)
  return file && { ...file, from, to: from + piece.length }
}

const ESCAPED_SLASH = /(?<!\\)\\+\//g
const ESCAPED_BREAK = /(?<!\\)\\+[nr]/g

/** Base64 without the escapes that it has within JSON. */
function* withoutEscapes(piece: string): Steps<string> {
  if (!piece.includes('\\')) return piece
  let plain = ''
  for (let at = 0; at < piece.length; yield undefined) {
    let end = at + STEP
    while (piece[end - 1] === '\\') end += 1
    plain += piece.slice(at, end).replaceAll(ESCAPED_SLASH, '/').replaceAll(ESCAPED_BREAK, '')
    at = end
  }
  return plain
}

/** A change of a file within a value, and the file as it is written in the value. */
export interface FileChange extends Pick<FileWithin, 'from' | 'to'> {
  readonly written: string
}

/** Returns a value with some of the files within it replaced, in the order in which they were found. */
export function withFiles(value: string, changes: readonly FileChange[]): string {
  let next = ''
  let at = 0
  for (const { from, to, written } of changes) {
    next += value.slice(at, from) + written
    at = to
  }
  return next + value.slice(at)
}

export const asItStands: Reading = function* (text) {
  yield undefined
  return { text, write: (next) => next }
}

const PLAIN: readonly Reading[] = [asItStands]
const NOTHING: readonly Reading[] = []

const MEDIA_READINGS: readonly Reading[] = [
  function* (value, facts) {
    return (yield* isUnreadFile(value, facts)) ? undefined : yield* asItStands(value, facts)
  },
  function* (value, facts) {
    return (yield* fileIn(value, facts)) ?? (yield* lenientFileIn(value))
  },
]

const DATA_READINGS: readonly Reading[] = [
  function* (value, facts) {
    const { header, data, stated, isBase64: isEncoded } = parted(value, facts)
    if (DATA_URL.test(header) && header.length <= MAX_TERM) return undefined
    const isUnread = isEncoded && (yield* isUnreadFile(data, stated))
    if (!DATA_URL.test(header) && !isUnread) return yield* asItStands(value, facts)
    return { text: header.slice(0, -1), write: (next) => `${next},${data}` }
  },
  function* (value, facts) {
    const { header, data, stated, isBase64: isEncoded } = parted(value, facts)
    if (!DATA_URL.test(header) || (isEncoded && (yield* isUnreadFile(data, stated)))) return undefined
    return { text: data, write: (next) => header + next }
  },
  fileInUrl,
]

/** Reads the file in a data URL, if it is a text. */
function* fileInUrl(value: string, facts: FileFacts): Steps<ValueReading | undefined> {
  const { header, data, isBase64: isEncoded, stated } = parted(value, facts)
  if (isEncoded) {
    const plain = data.includes('%') ? decodePercent(data).toString('latin1') : data
    const file = (yield* fileIn(plain, stated)) ?? (yield* lenientFileIn(plain))
    return file && { text: file.text, write: (next) => header + file.write(next) }
  }
  const file = readTextFile(decodePercent(data), stated)
  if (!file || file.text === data) return undefined
  return { text: file.text, write: (next) => header + encodePercent(file.encode(next)) }
}

/** The parts of a data URL. */
interface DataUrlParts {
  /** The beginning of the URL, with its comma. */
  readonly header: string
  readonly data: string
  readonly isBase64: boolean
  /** What is stated about the file, by the URL too. */
  readonly stated: FileFacts
}

function parted(value: string, { mediaType, name }: FileFacts): DataUrlParts {
  const end = value.indexOf(',') + 1
  const [header, data] = [value.slice(0, end), value.slice(end)]
  const given = header.trim().slice('data:'.length, -1)
  const isEncoded = given.split(';').some((word) => word.trim().toLowerCase() === 'base64')
  return { header, data, isBase64: isEncoded, stated: { mediaType: `${given};${mediaType}`, name } }
}

/** Whether a value is base64 of a file, so that nothing can be found in its letters. */
function* isUnreadFile(value: string, facts: FileFacts): Steps<boolean> {
  if (!(yield* isBase64(value))) return false
  if (value.length > MAX_UNKNOWN || hasBinarySignature(headOf(value))) return true
  return (yield* fileIn(value, facts)) !== undefined
}

function headOf(value: string): Buffer {
  return Buffer.from(value.slice(0, 2 * SIGNATURE_BYTES), 'base64')
}

function* isProperDataUrl(value: string): Steps<boolean> {
  if (!isDataUrl(value)) return false
  const { header, data, isBase64: isEncoded } = parted(value, NONE)
  return DATA_URL.test(header) && (!isEncoded || (yield* isBase64(data)))
}

function isData(value: string): boolean {
  return DATA.test(value.slice(0, MAX_HEADER))
}

function isDataUrl(value: string): boolean {
  return isData(value) && value.slice(0, MAX_HEADER).includes(',')
}

/** The letters of a text that is base64 as a whole, however it is spaced; undefined for any other text. */
function* wholeBase64(value: string): Steps<string | undefined> {
  let letters = ''
  let last = ''
  for (let at = 0; at < value.length; at += STEP) {
    const piece = value.slice(at, at + STEP)
    if (NO_SPACED_BASE64.test(piece)) return undefined
    const next = /\s/.test(piece) ? piece.replaceAll(/\s+/g, '') : piece
    if (NO_BASE64.test(last + next)) return undefined
    last = next.at(-1) ?? last
    letters += next
    yield undefined
  }
  return letters.length < MIN_FILE ? undefined : letters
}

/** The letters of base64 in lines, which the decoder reads ten times as fast. */
function* withoutSpace(value: string): Steps<string> {
  let letters = ''
  for (let at = 0; at < value.length; at += STEP) {
    letters += value.slice(at, at + STEP).replaceAll(/\s+/g, '')
    yield undefined
  }
  return letters
}

/** Whether a value is base64, in one line or in lines of one length. */
function* isBase64(value: string): Steps<boolean> {
  const width = value.indexOf('\n') + 1
  if (width > 0 && width <= MIN_LINE && value.length > MIN_LINE) return false
  for (let at = 0; at < value.length; at += STEP) {
    if (NO_BASE64.test(value.slice(Math.max(0, at - 1), at + STEP))) return false
    yield undefined
  }
  if (width === 0) return true
  for (let at = width - 1; at < value.length; at += width) {
    const next = value.indexOf('\n', at)
    if (next !== at && next !== -1 && next !== value.length - 1) return false
  }
  return true
}

/** Reads base64 as a file; undefined if it is no base64, or no text. */
function* fileIn(value: string, facts: FileFacts): Steps<ValueReading | undefined> {
  if (!isStatedText(facts) && isBinary(headOf(value))) return undefined
  if (!(yield* isBase64(value))) return undefined
  const letters = value.includes('\n') ? yield* withoutSpace(value) : value
  return asReading(readTextFile(Buffer.from(letters, 'base64'), facts), value)
}

/**
 * Reads a file as leniently as any decoder does, without the characters that base64 does not have. Nothing that its bytes
 * say can be relied on.
 */
function* lenientFileIn(value: string): Steps<ValueReading | undefined> {
  if (yield* isBase64(value)) return undefined
  const decoded: Buffer[] = []
  let rest = ''
  for (let at = 0; at < value.length; at += STEP) {
    const words = (rest + value.slice(at, at + STEP).replaceAll(/[^\w+/=-]+/g, '')).split(/=+/)
    const last = words.pop() ?? ''
    // Four letters are three bytes.
    const whole = last.length - (last.length % 4)
    rest = last.slice(whole)
    words.push(last.slice(0, whole))
    decoded.push(Buffer.concat(words.map((word) => Buffer.from(word, 'base64'))))
    yield undefined
  }
  decoded.push(Buffer.from(rest, 'base64'))
  return asReading(readTextFile(Buffer.concat(decoded), TEXT_FILE), value)
}

function asReading(file: TextFile | undefined, value: string): ValueReading | undefined {
  if (!file) return undefined
  return {
    text: file.text,
    write(next) {
      const encoding = /[-_]/.test(value) && !/[+/]/.test(value) ? 'base64url' : 'base64'
      return file.encode(next).toString(encoding)
    },
  }
}

const TEXT_FILE: FileFacts = { mediaType: 'text/plain', name: '' }
const NONE: FileFacts = { mediaType: '', name: '' }

function isBinary(head: Buffer): boolean {
  return hasBinarySignature(head) && head.some((byte) => byte >= 0x80)
}
