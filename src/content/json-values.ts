/**
 * Maximum number of values in a JSON text that is parsed or searched, the same as in requests. More could
 * exhaust the memory of the thread, which would end the process.
 */
export const MAX_JSON_VALUES = 200_000

const QUOTE = 0x22
const COMMA = 0x2c
const OPEN_LIST = 0x5b
const BACKSLASH = 0x5c
const CLOSE_LIST = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const SPACE = 0x20

/**
 * Whether a text, if it is JSON, has at most `MAX_JSON_VALUES` values. Counts in a loop, so that nesting cannot
 * overflow the stack.
 */
export function hasFewJsonValues(text: string): boolean {
  if (text.length <= MAX_JSON_VALUES) return true
  let values = 1
  let isFirst = false
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at)
    if (unit <= SPACE) continue
    // A list or an object has as many values as commas, and one more unless it is empty.
    if (unit === COMMA || (isFirst && unit !== CLOSE_LIST && unit !== CLOSE_OBJECT)) values += 1
    if (values > MAX_JSON_VALUES) return false
    isFirst = unit === OPEN_LIST || unit === OPEN_OBJECT
    if (unit === QUOTE) at = quoteAfter(text, at)
  }
  return true
}

/**
 * The position at which the string that begins at `start` ends; the end of the text if the string is not
 * closed.
 */
export function quoteAfter(text: string, start: number): number {
  let at = start + 1
  for (; at < text.length; at += 1) {
    const unit = text.charCodeAt(at)
    if (unit === QUOTE) return at
    if (unit === BACKSLASH) at += 1
  }
  return at
}

const DATA = /(?<![^\r\n\uFEFF])data: ?([^\r\n]*)/g
/** Matches an event of a turn over WebSocket: they are kept one a line. */
const EVENT_LINE = /(?<![^\n])(\{[^\n]*)/g

/** A line with data of an event stream, and the positions of the line and of its data in the text. */
export interface DataLine {
  readonly data: string
  readonly lineStart: number
  readonly start: number
}

/** The lines with data of an event stream. A generator, because a stream may have millions of events. */
export function* dataOfEvents(text: string): Generator<DataLine> {
  for (const { 0: line, 1: data = '', index } of text.matchAll(text.startsWith('{') ? EVENT_LINE : DATA))
    yield { data, lineStart: index, start: index + line.length - data.length }
}
