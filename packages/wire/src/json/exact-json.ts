import { asRecord } from './record.ts'

/** Matches numbers with so many digits that they may lose precision as a double. */
const MANY_DIGITS = /\d{16}/

/**
 * Reviver function of JSON.parse that also gets the source text of a value. TypeScript's types do not have it
 * yet.
 */
type SourceReviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown

interface ExactJson {
  parse(text: string, reviver: SourceReviver): unknown
  rawJSON(text: string): object
  isRawJSON(value: unknown): boolean
}

const exact = JSON as unknown as ExactJson

/**
 * Parses JSON in such a way that JSON.stringify writes each number as it was, including integers above 2^53.
 * Throws the same errors as JSON.parse.
 */
export function parseExact(text: string): unknown {
  if (!MANY_DIGITS.test(text)) return JSON.parse(text)
  return exact.parse(text, (_key, value, { source }) =>
    typeof value === 'number' && source !== undefined && source !== JSON.stringify(value)
      ? exact.rawJSON(source)
      : value,
  )
}

/** Parses a JSON object as `parseExact` does. Returns undefined for any other text. */
export function parseExactRecord(text: string): Record<string, unknown> | undefined {
  try {
    return asRecord(parseExact(text))
  } catch {
    return undefined
  }
}

/** Creates a number that JSON.stringify writes with exactly these digits. */
export function exactNumber(text: string): object {
  return exact.rawJSON(text)
}

/**
 * Whether an object stands for a JSON text that JSON.stringify writes unchanged, such as a number with many
 * digits.
 */
export function isJsonText(value: object): boolean {
  return exact.isRawJSON(value)
}
