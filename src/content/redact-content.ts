import { isUtf8 } from 'node:buffer'
import { compileRule, PII_KINDS } from '../redaction/rule.ts'
import { Screen } from '../redaction/screen.ts'
import { jsonLiterals, type Literal, TooManyValues } from './json-literals.ts'
import { dataOfEvents } from './json-values.ts'

const WITH = '[REDACTED]'
const LIST = /^\s*\[/
const [BACKSLASH, LETTER_U, SPACE] = [0x5c, 0x75, 0x20]

const screen = new Screen([
  { rule: compileRule('secrets', { secrets: true }), do: 'redact', with: WITH },
  { rule: compileRule('pii', { pii: PII_KINDS }), do: 'redact', with: WITH },
])

/** A part of a text, which ends before `end`. */
interface Range {
  readonly start: number
  readonly end: number
}

/**
 * Strings of a text that are held at most until all of it is screened: those that others may continue, and those
 * in which something was found.
 */
const MAX_HELD = 500_000
/** Short strings in which nothing was found are remembered, because events repeat them: so many. */
const MAX_KNOWN = 10_000
const MAX_KNOWN_LENGTH = 64

/**
 * A part of a call's content without the secrets and the personal data that the built-in matchers find. Strings of
 * JSON are screened as what they say; those that continue each other in the events of a stream, as one text. All
 * other bytes stay as they are, but for a character that was cut off at the end. Undefined if the part is no text,
 * or too large to be screened.
 */
export function redactedContent(bytes: Buffer): Buffer | undefined {
  const whole = wholeCharacters(bytes)
  if (!whole) return undefined
  const text = whole.toString()
  try {
    const redacted = redactedText(text)
    return redacted === text ? whole : Buffer.from(redacted)
  } catch (error) {
    if (error instanceof TooManyValues) return undefined
    throw error
  }
}

/** Maximum bytes of a character that was cut off. */
const MAX_CUT = 3

/** Text without the character in the middle of which it was cut off; undefined if it is none. */
function wholeCharacters(bytes: Buffer): Buffer | undefined {
  if (isUtf8(bytes)) return bytes
  for (let cut = 1; cut <= Math.min(MAX_CUT, bytes.length); cut += 1) {
    const lead = bytes[bytes.length - cut]!
    // Bytes 10xxxxxx go on with a character, and the first one says how many they are.
    if (lead >> 6 === 0b10) continue
    const length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 1
    const head = bytes.subarray(0, bytes.length - cut)
    return cut < length && lead < 0xf5 && isUtf8(head) ? head : undefined
  }
  return undefined
}

function redactedText(text: string): string {
  const literals = jsonLiterals(text)
  if (!literals) return redactedEvents(text) ?? cutOff(text)
  // Of a list of contents, as Gemini streams them, the strings continue each other too.
  const screening = new Screening(LIST.test(text))
  screening.add(literals)
  return screening.applied(text)
}

/** Text that is no JSON, such as an answer or a stream that was cut off. Of a cut event nothing is kept. */
function cutOff(text: string): string {
  const events = redactedEvents(text.slice(0, text.lastIndexOf('\n') + 1))
  if (events !== undefined) return events + WITH
  // The letter of an escape is not part of the value behind it.
  return without(text, [...screen.find(withoutEscapes(text))])
}

/** A text with spaces instead of the escapes of JSON, but for those of code units. It may be all escapes. */
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

/** The events of a stream; undefined if the text is none, or one of its events is no JSON. */
function redactedEvents(text: string): string | undefined {
  const screening = new Screening(true)
  let hasEvents = false
  for (const { data, start } of dataOfEvents(text)) {
    if (data.trim() === '[DONE]') continue
    const literals = jsonLiterals(data, start)
    if (!literals) return undefined
    hasEvents = true
    screening.add(literals)
  }
  return hasEvents ? screening.applied(text) : undefined
}

/** What is found in the strings of a text. Of those that say nothing to others, nothing is held. */
class Screening {
  readonly #isContinued: boolean
  readonly #ranges = new Map<Literal, Range[]>()
  /** Strings that may continue each other, by their place. */
  readonly #continued = new Map<string, Literal[]>()
  readonly #known = new Set<string>()
  #held = 0

  /** `isContinued`: whether strings with the same place continue each other. */
  constructor(isContinued: boolean) {
    this.#isContinued = isContinued
  }

  /** Screens strings. Throws `TooManyValues` if the text has too many. */
  add(literals: readonly Literal[]): void {
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

  /** The text of these strings without what was found. */
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

  #screenAlone(literal: Literal): void {
    const { value } = literal
    if (this.#known.has(value)) return
    const found = screen.find(value)
    for (const match of found) this.#add(literal, match)
    if (found.length > 0 || value.length > MAX_KNOWN_LENGTH) return
    if (this.#known.size === MAX_KNOWN) this.#known.clear()
    this.#known.add(value)
  }

  readonly #add = (literal: Literal, range: Range): void => {
    this.#hold()
    const known = this.#ranges.get(literal)
    if (known) known.push(range)
    else this.#ranges.set(literal, [range])
  }

  #hold(): void {
    this.#held += 1
    if (this.#held > MAX_HELD) throw new TooManyValues()
  }
}

/** Adds what is found in strings that continue each other: where it begins, and where it goes on. */
function addAcross(literals: readonly Literal[], add: (literal: Literal, range: Range) => void): void {
  const matches = screen.find(literals.map(({ value }) => value).join(''))
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

/** A text without these ranges. One that begins before the text was written in the text before. */
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
