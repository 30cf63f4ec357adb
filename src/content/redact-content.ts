import { isUtf8 } from 'node:buffer'
import { compileRule, PII_KINDS } from '../redaction/rule.ts'
import { TextScreen, TooManyMatches } from '../redaction/screen.ts'
import { findJsonStrings, type JsonStringLiteral, TooManyJsonValues } from './json-literals.ts'
import { dataOfEvents } from './json-values.ts'

const WITH = '[REDACTED]'
const LIST = /^\s*\[/
const [BACKSLASH, LETTER_U, SPACE] = [0x5c, 0x75, 0x20]

const screen = new TextScreen([
  { rule: compileRule('secrets', { secrets: true }), do: 'redact', with: WITH },
  { rule: compileRule('pii', { pii: PII_KINDS }), do: 'redact', with: WITH },
])

/** A range of positions in a text; `end` is exclusive. */
interface Range {
  readonly start: number
  readonly end: number
}

/** Maximum number of strings and matches that are held in memory while a text is searched. */
const MAX_HELD = 500_000
/**
 * Maximum number of short strings without matches that are remembered, because the events of a stream repeat
 * them.
 */
const MAX_KNOWN = 10_000
const MAX_KNOWN_LENGTH = 64

/**
 * Removes the secrets and personal data that the built-in matchers find from a part of a call's content. The
 * decoded strings of JSON are searched, not their escapes; strings that continue each other in the events of
 * a stream are searched as one text. All other bytes stay unchanged, except for an incomplete character at
 * the end. Returns undefined if the part is not UTF-8 text, or is too large to be searched.
 */
export function redactedContent(bytes: Buffer): Buffer | undefined {
  const whole = wholeCharacters(bytes)
  if (!whole) return undefined
  const text = whole.toString()
  try {
    const redacted = redactedText(text)
    return redacted === text ? whole : Buffer.from(redacted)
  } catch (error) {
    if (error instanceof TooManyJsonValues || error instanceof TooManyMatches) return undefined
    throw error
  }
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
  if (!literals) return redactedEvents(text) ?? cutOff(text)
  // In a list of responses, as Gemini may stream them, strings continue each other as in events.
  const screening = new Screening(LIST.test(text))
  screening.add(literals)
  return screening.applied(text)
}

/**
 * Redacts a text that is not JSON, such as an answer or a stream that broke off. An incomplete event at the
 * end is replaced as a whole.
 */
function cutOff(text: string): string {
  const events = redactedEvents(text.slice(0, text.lastIndexOf('\n') + 1))
  if (events !== undefined) return events + WITH
  // The letter of an escape such as `\n` would otherwise look like the beginning of the text after it.
  return without(text, [...screen.find(withoutEscapes(text), MAX_HELD)])
}

/**
 * Replaces JSON escapes such as `\n` by two spaces, except for `\uXXXX`. A loop over bytes, because the text
 * may consist of escapes only.
 */
function withoutEscapes(text: string): string {
  if (!text.includes('\\')) return text
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length - 1; at += 1) {
    if (bytes[at] !== BACKSLASH || bytes[at + 1] === LETTER_U || bytes[at + 1]! >= 0x80) continue
    bytes[at] = SPACE
    bytes[at + 1] = SPACE
    at += 1
  }
  return bytes.toString()
}

/** Redacts the events of a stream; undefined if the text has no events, or an event that is not JSON. */
function redactedEvents(text: string): string | undefined {
  const screening = new Screening(true)
  let hasEvents = false
  for (const { data, start } of dataOfEvents(text)) {
    if (data.trim() === '[DONE]') continue
    const literals = findJsonStrings(data, start)
    if (!literals) return undefined
    hasEvents = true
    screening.add(literals)
  }
  return hasEvents ? screening.applied(text) : undefined
}

/**
 * Collects the matches in the strings of a text. Strings that have no match and cannot continue others are
 * not held.
 */
class Screening {
  readonly #isContinued: boolean
  readonly #ranges = new Map<JsonStringLiteral, Range[]>()
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
      this.#screenAlone(literal)
      const { place } = literal
      if (!this.#isContinued || place === undefined) continue
      this.#hold()
      const same = this.#continued.get(place)
      if (same) same.push(literal)
      else this.#continued.set(place, [literal])
    }
  }

  /** The text, with every match in its strings replaced. */
  applied(text: string): string {
    for (const some of this.#continued.values()) if (some.length > 1) addAcross(some, this.#add)
    const literals = [...this.#ranges.keys()].sort((a, b) => a.start - b.start)
    let redacted = ''
    let at = 0
    for (const literal of literals) {
      redacted +=
        text.slice(at, literal.start) + JSON.stringify(without(literal.value, this.#ranges.get(literal)!))
      at = literal.end
    }
    return redacted + text.slice(at)
  }

  #screenAlone(literal: JsonStringLiteral): void {
    const { value } = literal
    if (this.#known.has(value)) return
    const found = screen.find(value, MAX_HELD)
    for (const match of found) this.#add(literal, match)
    if (found.length > 0 || value.length > MAX_KNOWN_LENGTH) return
    if (this.#known.size === MAX_KNOWN) this.#known.clear()
    this.#known.add(value)
  }

  readonly #add = (literal: JsonStringLiteral, range: Range): void => {
    this.#hold()
    const known = this.#ranges.get(literal)
    if (known) known.push(range)
    else this.#ranges.set(literal, [range])
  }

  #hold(): void {
    this.#held += 1
    if (this.#held > MAX_HELD) throw new TooManyJsonValues()
  }
}

/**
 * Searches strings that belong to one text, and adds the ranges of each match in every string that contains a
 * piece of it.
 */
function addAcross(
  literals: readonly JsonStringLiteral[],
  add: (literal: JsonStringLiteral, range: Range) => void,
): void {
  const matches = screen.find(literals.map(({ value }) => value).join(''), MAX_HELD)
  let from = 0
  let next = 0
  for (const literal of literals) {
    const to = from + literal.value.length
    for (let at = next; at < matches.length; at += 1) {
      const { start, end } = matches[at]!
      if (start >= to) break
      if (end <= to && at === next) next += 1
      if (end > from) add(literal, { start: start - from, end: Math.min(end, to) - from })
    }
    from = to
  }
}

/** Replaces these ranges of a text. Ranges that overlap get one replacement together. */
function without(text: string, ranges: Range[]): string {
  let redacted = ''
  let at = 0
  for (const { start, end } of ranges.toSorted((a, b) => a.start - b.start || b.end - a.end)) {
    if (end <= at) continue
    if (start >= at) redacted += text.slice(at, start) + WITH
    at = end
  }
  return redacted + text.slice(at)
}
