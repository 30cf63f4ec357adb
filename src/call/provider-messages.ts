import { textsOfRequest, type RequestSources } from './request-texts.ts'

/** Maximum characters of a provider's message that are kept. */
const MAX_LENGTH = 300
/** Length of a sequence of characters that is removed from a message if it also occurs in the request. */
const RUN = 24
/**
 * Length of the pieces by which a request's text is indexed. Every sequence of `RUN` characters contains a
 * piece that begins at a multiple of this length.
 */
const PIECE = RUN / 2
/** Minimum length of a text of the conversation that is removed wherever a message contains it. */
const MIN_VALUE = 8
/** Character that stands for text that was removed from a message. */
const REMOVED = '…'

/** Matches control characters, line breaks and invisible characters. */
const CONTROL = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/**
 * Matches escape sequences of JSON, of the languages in which providers print strings, and of HTML, even if
 * they are escaped twice. A backslash without a meaning is dropped.
 */
const ESCAPE =
  /\\+(?:u\{([\da-f]{1,6})\}|u000(10[\da-f]{3}|[1-9a-f][\da-f]{4})|u([\da-f]{4})|x([\da-f]{2})|([bfnrtv]))|\\+|&(?:amp;)*(?:#x([\da-f]{1,6})|#(\d{1,7})|(lt|gt|quot|apos|nbsp|amp));/gi
const MARKS: Readonly<Record<string, string>> = {
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
  amp: '&',
}
const SPACE = /[\s\p{Cc}\p{Cf}]+/gu

/**
 * Texts of a client's request, with which providers' messages are compared. They are read when first needed.
 */
export class ComparedRequestTexts {
  readonly #sources: () => RequestSources
  #texts: RequestTexts | undefined
  #isRead = false

  constructor(sources: () => RequestSources) {
    this.#sources = sources
  }

  /** The texts; undefined if the request is too large to be compared. */
  get texts(): RequestTexts | undefined {
    if (!this.#isRead) {
      this.#isRead = true
      const content = textsOfRequest(this.#sources())
      this.#texts = content && {
        texts: content.texts.map(comparable),
        values: new Set(content.values.map((value) => comparable(value).trim())),
      }
    }
    return this.#texts
  }

  /**
   * Whether a text of the request may contain these words. If the request cannot be read as a whole, its bytes
   * are searched, and any doubt counts as yes. Must be called for few calls only, because it reads the request.
   */
  mayContain(words: string): boolean {
    const found = this.texts
    if (found) return found.texts.some((text) => text.includes(comparable(words)))
    const { body, fields } = this.#sources()
    if (fields === undefined) return true
    const text = body.toString()
    return ESCAPED_ASCII.test(text) || text.includes(JSON.stringify(words).slice(1, -1))
  }
}

/** Matches a JSON escape of a character that is usually not escaped. */
const ESCAPED_ASCII = /\\u00[2-7]|\\\//i

/** A request's texts, normalized for comparison. */
interface RequestTexts {
  readonly texts: readonly string[]
  /** Texts of the request's conversation. */
  readonly values: ReadonlySet<string>
}

/**
 * Returns a provider's redacted message in the form that is stored: on one line, without text repeated from
 * the request, and with at most 300 characters. Empty if there is none, or if the request is too large to be
 * compared. `docs/operations.md: Words of providers`.
 */
export function storableMessage(message: string | undefined, request: ComparedRequestTexts): string {
  if (message === undefined || message === '') return ''
  const { texts } = request
  if (!texts) return ''
  return oneLineMessage(withoutEcho(message.replace(CONTROL, ' ').trim(), texts))
}

/** Returns a message on one line, with at most 300 characters. */
export function oneLineMessage(message: string): string {
  return message.replace(CONTROL, ' ').trim().slice(0, MAX_LENGTH).toWellFormed()
}

function decoded(escape: string, ...groups: unknown[]): string {
  const [braces, long, short, byte, control, hex, number, mark] = groups as (string | undefined)[]
  if (control !== undefined) return ' '
  if (mark !== undefined) return MARKS[mark.toLowerCase()] ?? ''
  const digits = braces ?? long ?? short ?? byte ?? hex
  if (digits === undefined && number === undefined) return ''
  const code = digits === undefined ? Number(number) : Number.parseInt(digits, 16)
  return code <= 0x10ffff ? String.fromCodePoint(code) : escape
}

// Converts to upper case first, because some letters become several letters in upper case. The small sigma
// has two forms, between which `toLowerCase` chooses by the neighbouring letters.
const folded = (text: string): string => text.toUpperCase().toLowerCase().replaceAll('ς', 'σ')

/** Normalizes a text for comparison: without escapes, repeated white space, and upper case. */
function comparable(text: string): string {
  return folded(text.replace(ESCAPE, decoded).replace(SPACE, ' '))
}

/** A message, normalized for comparison, with the original position of each of its code units. */
interface Form {
  readonly text: string
  readonly starts: readonly number[]
  readonly ends: readonly number[]
}

function formOf(message: string): Form {
  let text = ''
  const starts: number[] = []
  const ends: number[] = []
  const add = (characters: string, from: number, to: number): void => {
    for (const character of characters) {
      const isSpace = character.replace(SPACE, ' ') === ' '
      if (isSpace && text.endsWith(' ')) {
        ends[ends.length - 1] = to
        continue
      }
      const units = isSpace ? ' ' : folded(character)
      text += units
      for (let i = 0; i < units.length; i += 1) {
        starts.push(from)
        ends.push(to)
      }
    }
  }
  const addPlain = (from: number, to: number): void => {
    let at = from
    for (const character of message.slice(from, to)) {
      add(character, at, at + character.length)
      at += character.length
    }
  }
  let at = 0
  for (const match of message.matchAll(ESCAPE)) {
    addPlain(at, match.index)
    const [escape, ...groups] = match
    at = match.index + escape.length
    add(decoded(escape, ...groups), match.index, at)
  }
  addPlain(at, message.length)
  return { text, starts, ends }
}

/** Replaces text in `message` that also occurs in the request. Takes linear time. */
function withoutEcho(message: string, { texts, values }: RequestTexts): string {
  const form = formOf(message)
  const isEcho = new Uint8Array(message.length)
  markRuns(form, texts, isEcho)
  markValues(form, values, isEcho)
  return cutOut(message, isEcho)
}

function mark({ starts, ends }: Form, at: number, length: number, isEcho: Uint8Array): void {
  isEcho.fill(1, starts[at], ends[at + length - 1])
}

function markRuns(form: Form, texts: readonly string[], isEcho: Uint8Array): void {
  const { text } = form
  if (text.length < RUN) return
  const pieces = new Set<string>()
  for (let at = 0; at + PIECE <= text.length; at += 1) pieces.add(text.slice(at, at + PIECE))
  const places = new Map<string, number[]>()
  for (let at = 0; at + RUN <= text.length; at += 1) {
    const run = text.slice(at, at + RUN)
    const known = places.get(run)
    if (known) known.push(at)
    else places.set(run, [at])
  }
  for (const other of texts) {
    for (let at = 0; at + PIECE <= other.length && places.size > 0; at += PIECE) {
      if (!pieces.has(other.slice(at, at + PIECE))) continue
      for (let from = Math.max(0, at - PIECE); from <= at; from += 1) {
        const run = other.slice(from, from + RUN)
        for (const place of places.get(run) ?? []) mark(form, place, RUN, isEcho)
        places.delete(run)
      }
    }
  }
}

// Marks the texts of the conversation (`values`) in the message. Those of at least `RUN` characters are left
// out, because they are found by their sequences of `RUN` characters.
function markValues(form: Form, values: ReadonlySet<string>, isEcho: Uint8Array): void {
  const { text } = form
  const begins = new Set<string>()
  for (let at = 0; at + MIN_VALUE <= text.length; at += 1) begins.add(text.slice(at, at + MIN_VALUE))
  for (const value of values) {
    if (value.length < MIN_VALUE || value.length >= RUN || !begins.has(value.slice(0, MIN_VALUE))) continue
    for (let at = text.indexOf(value); at !== -1; at = text.indexOf(value, at + 1))
      mark(form, at, value.length, isEcho)
  }
}

function cutOut(message: string, isCut: Uint8Array): string {
  let result = ''
  for (let at = 0; at < message.length; at += 1) {
    if (!isCut[at]) result += message[at]
    else if (at === 0 || !isCut[at - 1]) result += REMOVED
  }
  return result
}
