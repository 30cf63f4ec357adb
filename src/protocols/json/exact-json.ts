/** So many digits in a row may be more than a number can hold. */
const MANY_DIGITS = /\d{16}/

/**
 * What JSON.parse tells a reviver about a primitive: its text. Newer than the types that come with the
 * compiler.
 */
type SourceReviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown

interface ExactJson {
  parse(text: string, reviver: SourceReviver): unknown
  rawJSON(text: string): object
}

const exact = JSON as unknown as ExactJson

/**
 * JSON.parse, but that JSON.stringify gives back each number as it was written, integers above 2^53 too.
 * Throws what JSON.parse throws.
 */
export function parseExact(text: string): unknown {
  if (!MANY_DIGITS.test(text)) return JSON.parse(text)
  return exact.parse(text, (_key, value, { source }) =>
    typeof value === 'number' && source !== undefined && source !== JSON.stringify(value)
      ? exact.rawJSON(source)
      : value,
  )
}

/** A number that JSON.stringify writes with exactly these digits. */
export function exactNumber(text: string): object {
  return exact.rawJSON(text)
}
