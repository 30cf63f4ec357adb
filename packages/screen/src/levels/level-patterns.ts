/** Matches the end of spaces. */
export const NOT_SPACE = /\S/g
/** Matches what may be an escape or the beginning of JSON, in a text and in a string. */
export const STOP_IN_TEXT = /[\\{[]/g
export const HAS_STOP_IN_TEXT = /[\\{[]/
export const HAS_STOP_IN_STRING = /["\\{[]/
export const STOP_IN_STRING = /["\\]/g
/** As the one above, where no further level exists, which JSON in the string would need. */
export const STOP_IN_LAST_STRING = /["\\{[]/g
/** Matches the beginning of JSON within a text, and at the beginning of one. */
export const OPENING = /\{\s{0,64}"|\[\s{0,64}(?:"|\{\s{0,64}["}])/y
export const FIRST_OPENING = /\[|\{\s{0,64}["}]/y
/** Matches the beginning of JSON whose quotes are escaped. */
export const ESCAPED_OPENING = /[{[]\s{0,64}(?:\{\s{0,64})?\\/y
/** Matches what can still become one of them if more text arrives. */
export const BEGUN_OPENING = /[{[]\s{0,64}(?:\{\s{0,64})?$/y
/** Matches the spaces between the parts of JSON. */
export const SPACE = /[ \t\r\n]+/y
/** A value without quotes; more characters than a number has are none. */
export const BARE = /[-+.0-9A-Za-z]{1,41}/y

/** Position of the first match from a position on; the end of the text if there is none. */
export function indexOf(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from
  return pattern.exec(text)?.index ?? text.length
}

/** Whether a sticky pattern matches at a position. */
export function matches(pattern: RegExp, text: string, at: number): boolean {
  pattern.lastIndex = at
  return pattern.test(text)
}

/** What a sticky pattern matches at a position. */
export function matchAt(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at
  return pattern.exec(text)?.[0]
}
