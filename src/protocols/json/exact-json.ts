/** Run of digits that a number may not hold exactly. */
const MANY_DIGITS = /\d{16}/

/** Reviver of JSON.parse with the source text of primitives, which the compiler's types lack. */
type SourceReviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown

interface ExactJson {
  parse(text: string, reviver: SourceReviver): unknown
  rawJSON(text: string): object
  isRawJSON(value: unknown): boolean
}

const exact = JSON as unknown as ExactJson

/**
 * Parses JSON so that JSON.stringify writes each number as it came, integers above 2^53 too. Throws what
 * JSON.parse throws.
 */
export function parseExact(text: string): unknown {
  if (!MANY_DIGITS.test(text)) return JSON.parse(text)
  return exact.parse(text, (_key, value, { source }) =>
    typeof value === 'number' && source !== undefined && source !== JSON.stringify(value)
      ? exact.rawJSON(source)
      : value,
  )
}

/** Creates a number that JSON.stringify writes with exactly these digits. */
export function exactNumber(text: string): object {
  return exact.rawJSON(text)
}

/** Whether a value stands for a JSON text that is written as it is. */
export function isJsonText(value: object): boolean {
  return exact.isRawJSON(value)
}
