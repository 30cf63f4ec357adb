import { isUtf8 } from 'node:buffer'
import { compileRule, PII_KINDS } from '@sluice/screen/rule'
import { TextScreen, TooManyMatches } from '@sluice/screen/screen'
import { screenContinuedParts } from '@sluice/screen/screen-parts'
import { type FileChange, filesWithin, withFiles } from '@sluice/wire/files-in-values'
import {
  findJsonStrings,
  findJsonStringsOfCutList,
  type JsonStringLiteral,
  TooManyJsonValues,
} from './json-literals.ts'
import { dataOfEvents } from './json-values.ts'

const WITH = '[REDACTED]'
const LIST = /^\s*\[/
const SEPARATORS = /^[\s,]*$/
/** Matches the end of a stream's events, the beginning of a further line of data, and the end of an event. */
const DONE = /(?:^|[\r\n])data: ?\[DONE\]\s*$/
const NEXT_LINE = /[\r\n]{1,2}data: ?/g
const EMPTY_LINE = /\r?\n\r?\n|\r\r/
/** Matches the place of a text that is a piece of a transcript. */
const TRANSCRIPT = /\.(?:segments|words)\[/

const screen = new TextScreen([
  { rule: compileRule('secrets', { secrets: true }), do: 'redact', with: WITH },
  { rule: compileRule('pii', { pii: PII_KINDS }), do: 'redact', with: WITH },
])

/** Maximum number of strings and matches that are held in memory while a text is searched. */
const MAX_HELD = 500_000
/**
 * Maximum number of short strings without matches that are remembered, because the events of a stream repeat
 * them.
 */
const MAX_KNOWN = 10_000
const MAX_KNOWN_LENGTH = 64

/**
 * Removes the secrets and personal data that the built-in matchers find from a part of a call's content, as guards do:
 * in each string of JSON, as it stands and with its escapes resolved. Strings that continue each other in the
 * events of a stream are searched as one text. All other bytes stay unchanged, except for an incomplete character at
 * the end. Returns undefined if the part is not UTF-8 text, or is too large to be searched.
 */
export function redactedContent(bytes: Buffer): Buffer | undefined {
  const whole = wholeCharacters(bytes)
  if (!whole) return undefined
  const text = whole.toString()
  try {
    const redacted = redactedText(withRedactedFiles(text))
    return redacted === text ? whole : Buffer.from(redacted)
  } catch (error) {
    if (error instanceof TooManyJsonValues || error instanceof TooManyMatches) return undefined
    throw error
  }
}

/** Redacts the files of text within a text, as guards read them. `docs/guards.md: Files of text` */
function withRedactedFiles(text: string): string {
  const changes: FileChange[] = []
  for (const file of filesWithin(text, 'text')) {
    if (!file) continue
    const redacted = redactedText(file.text)
    if (redacted !== file.text) changes.push({ ...file, written: file.write(redacted) })
  }
  return changes.length === 0 ? text : withFiles(text, changes)
}

/** Maximum number of bytes of an incomplete UTF-8 character. */
const MAX_CUT = 3

/** Removes an incomplete UTF-8 character from the end of a text; undefined if the bytes are not UTF-8. */
function wholeCharacters(bytes: Buffer): Buffer | undefined {
  if (isUtf8(bytes)) return bytes
  for (let cut = 1; cut <= Math.min(MAX_CUT, bytes.length); cut += 1) {
    const lead = bytes[bytes.length - cut]!
    // Bytes 10xxxxxx continue a character; the first byte of a character says how many there are.
    if (lead >> 6 === 0b10) continue
    const length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 1
    const head = bytes.subarray(0, bytes.length - cut)
    return cut < length && lead < 0xf5 && isUtf8(head) ? head : undefined
  }
  return undefined
}

function redactedText(text: string): string {
  const literals = findJsonStrings(text)
  if (!literals) return redactedEvents(text) ?? redactedCutList(text) ?? screen.applyWithin(text, MAX_HELD)
  // In a list of responses, as Gemini may stream them, strings continue each other as in events.
  const screening = new Screening(LIST.test(text))
  screening.add(literals)
  return screening.applied(text)
}

/** Redacts a JSON list that broke off. An incomplete item at the end is replaced as a whole. */
function redactedCutList(text: string): string | undefined {
  const list = LIST.test(text) ? findJsonStringsOfCutList(text) : undefined
  if (!list) return undefined
  const screening = new Screening(true)
  screening.add(list.literals)
  const rest = text.slice(list.end)
  return screening.applied(text.slice(0, list.end)) + (SEPARATORS.test(rest) ? rest : WITH)
}

/**
 * Redacts a text with events; undefined if none of them is JSON. What is between the events, and events that are not
 * JSON, are searched as they stand. An incomplete event at the end is replaced as a whole.
 */
function redactedEvents(text: string): string | undefined {
  const screening = new Screening(true)
  /** The position after the last event that is JSON. */
  let end = 0
  /** Lines with data that are not JSON each by itself, but may be together. */
  let open: { readonly lineStart: number; readonly start: number; end: number } | undefined
  const take = (data: string, start: number): boolean => {
    const literals = findJsonStrings(data, start)
    if (!literals) return false
    screening.addPlain(text, end, start)
    screening.add(literals)
    end = start + data.length
    return true
  }
  const close = (): void => {
    if (open) take(text.slice(open.start, open.end).replaceAll(NEXT_LINE, spaces), open.start)
    open = undefined
  }
  for (const { data, lineStart, start } of dataOfEvents(text)) {
    if (open && !EMPTY_LINE.test(text.slice(open.end, lineStart))) {
      open.end = start + data.length
      continue
    }
    close()
    if (!take(data, start)) open = { lineStart, start, end: start + data.length }
  }
  const last = open
  close()
  if (end === 0) return undefined
  const isCut = last !== undefined && end < last.end && last.end === text.length && !DONE.test(text)
  const rest = isCut ? last.lineStart : text.length
  screening.addPlain(text, end, rest)
  return screening.applied(text.slice(0, rest)) + (isCut ? WITH : '')
}

function spaces(text: string): string {
  return ' '.repeat(text.length)
}

/**
 * Collects the matches in the strings of a text. Strings that have no match and cannot continue others are
 * not held.
 */
class Screening {
  readonly #isContinued: boolean
  /** Parts of the text that are not JSON, and contain a match. */
  readonly #plain = new Set<JsonStringLiteral>()
  readonly #spellings: JsonStringLiteral[] = []
  /** The values that take the place of those with a match. */
  readonly #values = new Map<JsonStringLiteral, string>()
  /** Strings that may continue each other, by their path in the event. */
  readonly #continued = new Map<string, JsonStringLiteral[]>()
  readonly #known = new Set<string>()
  #held = 0

  /** `isContinued`: whether strings with the same path belong to one text. */
  constructor(isContinued: boolean) {
    this.#isContinued = isContinued
  }

  /** Searches strings for secrets and personal data. Throws `TooManyJsonValues` if the text has too many. */
  add(literals: readonly JsonStringLiteral[]): void {
    for (const literal of literals) {
      if (literal.isSpelling) {
        this.#hold()
        this.#spellings.push(literal)
        continue
      }
      this.#screenAlone(literal)
      const { place } = literal
      if (place === undefined || !(this.#isContinued || TRANSCRIPT.test(place))) continue
      this.#hold()
      const same = this.#continued.get(place)
      if (same) same.push(literal)
      else this.#continued.set(place, [literal])
    }
  }

  /** Searches a part of a text that is not JSON. */
  addPlain(text: string, start: number, end: number): void {
    if (start >= end) return
    const part = { start, end, value: text.slice(start, end), place: undefined }
    this.#screenAlone(part)
    if (this.#values.has(part)) this.#plain.add(part)
  }

  /**
   * The text, with every match in its strings replaced, and without the tokens and log probabilities, which would spell
   * what was replaced.
   */
  applied(text: string): string {
    for (const some of this.#continued.values()) if (some.length > 1) this.#screenTogether(some)
    if (this.#values.size === 0) return text
    const literals = [...this.#values.keys(), ...this.#spellings].sort((a, b) => a.start - b.start)
    let redacted = ''
    let at = 0
    for (const literal of literals) {
      if (literal.start < at) continue
      redacted += text.slice(at, literal.start) + this.#replacementOf(literal)
      at = literal.end
    }
    return redacted + text.slice(at)
  }

  #replacementOf(literal: JsonStringLiteral): string {
    if (literal.isSpelling) return 'null'
    const value = this.#values.get(literal) ?? literal.value
    return this.#plain.has(literal) ? value : JSON.stringify(value)
  }

  #screenAlone(literal: JsonStringLiteral): void {
    const { value } = literal
    if (this.#known.has(value)) return
    const screened = screen.applyWithin(value, MAX_HELD)
    if (screened !== value) {
      this.#hold()
      this.#values.set(literal, screened)
      return
    }
    if (value.length > MAX_KNOWN_LENGTH) return
    if (this.#known.size === MAX_KNOWN) this.#known.clear()
    this.#known.add(value)
  }

  /** Searches strings that belong to one text together, then again those in which a match was found before. */
  #screenTogether(literals: readonly JsonStringLiteral[]): void {
    const parts = screenContinuedParts(
      screen,
      literals.map(({ value }) => value),
      MAX_HELD,
    )
    for (const [index, literal] of literals.entries()) {
      const part = parts[index] ?? ''
      const isFoundAlone = this.#values.has(literal)
      if (!isFoundAlone && part === literal.value) continue
      if (!isFoundAlone) this.#hold()
      this.#values.set(literal, isFoundAlone ? screen.applyWithin(part, MAX_HELD) : part)
    }
  }

  #hold(): void {
    this.#held += 1
    if (this.#held > MAX_HELD) throw new TooManyJsonValues()
  }
}
