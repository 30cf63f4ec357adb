import { isUtf8 } from 'node:buffer'
import { compileRule, PII_KINDS } from '../redaction/rule.ts'
import { Screen } from '../redaction/screen.ts'
import { jsonLiterals, type Literal } from './json-literals.ts'

const WITH = '[REDACTED]'
const LIST = /^\s*\[/
const alone = (literal: Literal): Literal => ({ ...literal, place: undefined })
const DATA = /(?<![^\r\n])data: ?([^\r\n]*)/g
/** An escape of JSON, but for that of a code unit. */
const ESCAPE = /\\[^u]/g

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
 * A part of a call's content without the secrets and the personal data that the built-in matchers find. Strings of
 * JSON are screened as what they say; those that continue each other in the events of a stream, as one text. All
 * other bytes stay as they are, and so do those that are no text.
 */
export function redactedContent(bytes: Buffer): Buffer {
  if (!isUtf8(bytes)) return bytes
  const text = bytes.toString()
  const whole = jsonLiterals(text)
  // Of a list of contents, as Gemini streams them, the strings continue each other too.
  const literals = whole && !LIST.test(text) ? whole.map(alone) : (whole ?? literalsOfEvents(text))
  const redacted = literals ? withLiterals(text, literals) : cutOff(text)
  return redacted === text ? bytes : Buffer.from(redacted)
}

/** Text that is no JSON, such as an answer or a stream that was cut off. Of a cut event nothing is kept. */
function cutOff(text: string): string {
  const head = text.slice(0, text.lastIndexOf('\n') + 1)
  const events = literalsOfEvents(head)
  if (events) return withLiterals(head, events) + WITH
  // The letter of an escape is not part of the value behind it.
  return without(text, [...screen.find(text.replace(ESCAPE, '  '))])
}

/** The strings of the events of a stream; undefined if the text is none, or one of its events is no JSON. */
function literalsOfEvents(text: string): readonly Literal[] | undefined {
  const literals: Literal[] = []
  let hasEvents = false
  for (const { 0: line, 1: data = '', index } of text.matchAll(DATA)) {
    if (data.trim() === '[DONE]') continue
    const found = jsonLiterals(data, index + line.length - data.length)
    if (!found) return undefined
    hasEvents = true
    for (const literal of found) literals.push(literal)
  }
  return hasEvents ? literals : undefined
}

function withLiterals(text: string, literals: readonly Literal[]): string {
  const ranges = new Map<Literal, Range[]>()
  const add = (literal: Literal, range: Range): void => {
    const known = ranges.get(literal)
    if (known) known.push(range)
    else ranges.set(literal, [range])
  }
  for (const literal of literals) for (const match of screen.find(literal.value)) add(literal, match)
  const continued = Map.groupBy(
    literals.filter(({ place }) => place !== undefined),
    ({ place }) => place,
  )
  for (const some of continued.values()) if (some.length > 1) addAcross(some, add)
  let redacted = ''
  let at = 0
  for (const literal of literals) {
    const found = ranges.get(literal)
    if (!found) continue
    redacted += text.slice(at, literal.start) + JSON.stringify(without(literal.value, found))
    at = literal.end
  }
  return redacted + text.slice(at)
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
