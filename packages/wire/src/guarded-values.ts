import { decodePercent } from './media-source.ts'
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

/** Maximum length of a value that is not checked because it looks like a word of a protocol. */
const MAX_TERM = 64
const MEMBER_NAME = /^[\w.$:/*+-]*$/
const TERM = /^[\w.:/*+-]*(?:; ?[\w-]+=[\w.+-]+)*$/

/** Whether a value looks like a word of a protocol: an identifier, a size, a media type. */
export function isTerm(value: string): boolean {
  return value.length <= MAX_TERM && TERM.test(value)
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

/** Whether a member of an object has a name as APIs define them; any other was chosen by a user. */
export function isMemberName(name: string): boolean {
  return name.length <= MAX_TERM && MEMBER_NAME.test(name)
}

/** Matches what is not base64 of either alphabet, apart from line breaks. */
const NO_BASE64 = /[^\w+/=\r\n-]|=[^=\r\n]/
/** The same where it may be spaced in any way. */
const NO_SPACED_BASE64 = /[^\w+/=\s-]/
/** Matches values that only their makers can read: words in base64, joined by dots, behind the name of a scheme. */
const SEALED = /^(?:(?:bearer|basic|token) +)?[\w+/=~-]+(?:\.[\w+/=~-]*)*$/i
/** Matches the beginning of a data URL up to its comma, in the form that RFC 2397 describes. */
const DATA_URL = /^data:(?:[\w.+-]+\/[\w.+*-]+)?(?:; ?[\w-]+=(?:[\w.+-]+|"[\w.+-]*"))*(?:; ?base64)?,$/i
const DATA = /^\s*data:/i
/** Whether a value may be a signature, or another value that only its maker can read. */
export function isSealed(value: string): boolean {
  return SEALED.test(value)
}

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
export type Reading = (value: string, facts: FileFacts) => ValueReading | undefined

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

/**
 * Matches a data URL in a text, a string of JSON that is base64 as a whole, at any depth of escapes, lines of base64,
 * and words that may be base64 between others. The text may be cut off.
 */
const WITHIN = new RegExp(
  [
    String.raw`data:[^,]{0,256}?base64\s{0,4},\s{0,4}(?:[\w+/=%-]|\\+[/nr])+`,
    String.raw`data:[\w.+/-]{0,64}(?:;[^,\s"\\]{0,128})?,[\w!$&*+,./:;=?@~-]{0,256}%[\w!$&*+,./:;=?@~%-]+`,
    String.raw`(?<=")(?:[\w+/=-]|\\+[/nr]){16,}(?=\\*(?:"|$))`,
    String.raw`(?<=^|[\r\n])(?:[\w+/]{57,}\r?\n)*[\w+/]{16,}={0,2}(?=[\r\n]|$)`,
    String.raw`(?:(?<![\\\w+/-])|(?<=\\[nrt]))[\w+/-]{24,}={0,2}`,
  ].join('|'),
  'iy',
)
const ESCAPED_SLASH = /\\+\//g
const ESCAPED_BREAK = /\\+[nr]/g
/** Matches pieces of base64 between other characters, as in an envelope. */
const PIECE = /[\w+/-]{16,}={0,2}/y

/**
 * The files of text in base64 within a value: in a text, such as JSON, or in a signature. They are read from the value
 * as `readingsOf` has left it. Undefined stands for a piece that is none, so that the caller can pause.
 */
export function* filesWithin(value: string, kind: ValueKind): Generator<FileWithin | undefined, void> {
  const pattern = patternWithin(value, kind)
  if (pattern === undefined) {
    const file = kind !== 'media' && isWholeBase64(value) ? fileIn(withoutSpace(value), NONE) : undefined
    if (file) yield { ...file, from: 0, to: value.length }
    return
  }
  let run = 0
  for (let at = 0; at < value.length; at += 1) {
    if (at % PAUSE === PAUSE - 1) yield undefined
    const unit = value.charCodeAt(at)
    run = unit < IS_WORD.length && IS_WORD[unit] === 1 ? run + 1 : 0
    const start = run === 0 ? startBefore(value, at, unit) : run === MIN_FILE ? at + 1 - MIN_FILE : undefined
    if (start === undefined) continue
    // What follows an escape such as `\n` may begin with its letter.
    const from = matchLength(pattern, value, start) === 0 && value[start - 1] === '\\' ? start + 1 : start
    const length = matchLength(pattern, value, from)
    if (length === 0) continue
    yield fileWithin(value.slice(from, from + length), from)
    at = from + length - 1
    run = 0
  }
}

/** Number of characters of a text that are looked at at once. */
const PAUSE = 8192

/** Where a file may begin, other than with a long word, that is known by the character at a position. */
function startBefore(value: string, at: number, unit: number): number | undefined {
  if (unit === QUOTE) return at + 1
  return unit === COLON && SCHEME.test(value.slice(Math.max(0, at - 4), at)) ? at - 4 : undefined
}

function matchLength(pattern: RegExp, value: string, at: number): number {
  pattern.lastIndex = at
  return pattern.exec(value)?.[0].length ?? 0
}

/** Reads a piece of a value that looks like a file, and begins at this position. */
function fileWithin(piece: string, from: number): FileWithin | undefined {
  const plain = piece.includes('\\')
    ? piece.replaceAll(ESCAPED_SLASH, '/').replaceAll(ESCAPED_BREAK, '')
    : piece
  const file = DATA.test(plain) ? fileInUrl(plain, NONE) : fileIn(plain, NONE)
  return file && { ...file, from, to: from + piece.length }
}

/** What the files within a value look like; undefined for a value that is read as a whole. */
function patternWithin(value: string, kind: ValueKind): RegExp | undefined {
  if (kind === 'sealed' && isSealed(value)) return PIECE
  if (DATA.test(value)) return isProperDataUrl(value) ? undefined : PIECE
  if (kind === 'media') return isBase64(value) ? undefined : PIECE
  return isWholeBase64(value) ? undefined : WITHIN
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

/** Reads a value as it stands. */
export const asItStands: Reading = (text) => ({ text, write: (next) => next })

const PLAIN: readonly Reading[] = [asItStands]
const NOTHING: readonly Reading[] = []

const MEDIA_READINGS: readonly Reading[] = [
  (value, facts) => (isUnreadFile(value, facts) ? undefined : asItStands(value, facts)),
  (value, facts) => fileIn(value, facts) ?? lenientFileIn(value),
]

const DATA_READINGS: readonly Reading[] = [
  (value, facts) => {
    const { header, data, isUnread } = parted(value, facts)
    if (!DATA_URL.test(header) && !isUnread) return asItStands(value, facts)
    if (DATA_URL.test(header) && header.length <= MAX_TERM) return undefined
    return { text: header.slice(0, -1), write: (next) => `${next},${data}` }
  },
  (value, facts) => {
    const { header, data, isUnread } = parted(value, facts)
    if (isUnread || !DATA_URL.test(header)) return undefined
    return { text: data, write: (next) => header + next }
  },
  (value, facts) => fileInUrl(value, facts),
]

/** Reads the file in a data URL, if it is a text. */
function fileInUrl(value: string, facts: FileFacts): ValueReading | undefined {
  const { header, data, isBase64: isEncoded, stated } = parted(value, facts)
  if (isEncoded) {
    const plain = data.includes('%') ? decodePercent(data).toString('latin1') : data
    const file = fileIn(plain, stated) ?? lenientFileIn(plain)
    return file && { text: file.text, write: (next) => header + file.write(next) }
  }
  const file = readTextFile(decodePercent(data), stated)
  if (!file || file.text === data) return undefined
  return { text: file.text, write: (next) => header + percentEncoded(file.encode(next)) }
}

/** The parts of a data URL. */
interface Parted {
  /** The beginning of the URL, with its comma. */
  readonly header: string
  readonly data: string
  readonly isBase64: boolean
  /** Whether the data are those of a file, so that nothing can be found in their letters. */
  readonly isUnread: boolean
  /** What is stated about the file, by the URL too. */
  readonly stated: FileFacts
}

function parted(value: string, { mediaType, name }: FileFacts): Parted {
  const end = value.indexOf(',') + 1
  const [header, data] = [value.slice(0, end), value.slice(end)]
  const given = header.trim().slice('data:'.length, -1)
  const stated = { mediaType: `${given};${mediaType}`, name }
  const isEncoded = given.split(';').some((word) => word.trim().toLowerCase() === 'base64')
  return { header, data, isBase64: isEncoded, isUnread: isEncoded && isUnreadFile(data, stated), stated }
}

function percentEncoded(bytes: Buffer): string {
  return bytes.toString('latin1').replaceAll(/[^\w.~-]/g, (unit) => {
    return `%${unit.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`
  })
}

/** Whether a value is base64 of a file, so that nothing can be found in its letters. */
function isUnreadFile(value: string, facts: FileFacts): boolean {
  if (!isBase64(value)) return false
  return value.length > MAX_UNKNOWN || hasBinarySignature(headOf(value)) || fileIn(value, facts) !== undefined
}

function headOf(value: string): Buffer {
  return Buffer.from(value.slice(0, 2 * SIGNATURE_BYTES), 'base64')
}

function isProperDataUrl(value: string): boolean {
  if (!isDataUrl(value)) return false
  const { header, data, isBase64: isEncoded } = parted(value, NONE)
  return DATA_URL.test(header) && (!isEncoded || isBase64(data))
}

function isDataUrl(value: string): boolean {
  return DATA.test(value) && value.slice(0, MAX_HEADER).includes(',')
}

/** Whether a text is base64 as a whole, however it is spaced. */
function isWholeBase64(value: string): boolean {
  if (NO_SPACED_BASE64.test(value)) return false
  const letters = withoutSpace(value)
  return letters.length >= MIN_FILE && !NO_BASE64.test(letters)
}

function withoutSpace(value: string): string {
  return /\s/.test(value) ? value.replaceAll(/\s+/g, '') : value
}

/** Whether a value is base64, in one line or in lines of one length. */
function isBase64(value: string): boolean {
  if (NO_BASE64.test(value)) return false
  const width = value.indexOf('\n') + 1
  if (width === 0) return true
  for (let at = width - 1; at < value.length; at += width) {
    const next = value.indexOf('\n', at)
    if (next !== at && next !== -1 && next !== value.length - 1) return false
  }
  return width > MIN_LINE || value.length <= MIN_LINE
}

/** Reads base64 as a file; undefined if it is no base64, or no text. */
function fileIn(value: string, facts: FileFacts): ValueReading | undefined {
  if (!isBase64(value) || (!isStatedText(facts) && isBinary(headOf(value)))) return undefined
  return asReading(readTextFile(Buffer.from(value, 'base64'), facts), value)
}

/**
 * Reads a file as leniently as any decoder does, without the characters that base64 does not have. Nothing that its bytes
 * say can be relied on.
 */
function lenientFileIn(value: string): ValueReading | undefined {
  if (isBase64(value)) return undefined
  const pieces = value.replaceAll(/[^\w+/=-]/g, '').split(/=+/)
  const bytes = Buffer.concat(pieces.map((piece) => Buffer.from(piece, 'base64')))
  return asReading(readTextFile(bytes, TEXT_FILE), value)
}

function asReading(file: TextFile | undefined, value: string): ValueReading | undefined {
  if (!file) return undefined
  const encoding = /[-_]/.test(value) && !/[+/]/.test(value) ? 'base64url' : 'base64'
  return { text: file.text, write: (next) => file.encode(next).toString(encoding) }
}

const TEXT_FILE: FileFacts = { mediaType: 'text/plain', name: '' }
const NONE: FileFacts = { mediaType: '', name: '' }

function isBinary(head: Buffer): boolean {
  return hasBinarySignature(head) && head.some((byte) => byte >= 0x80)
}
