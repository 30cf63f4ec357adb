/** A schema of JSON Schema, 2020-12. */
export type JsonSchema = Readonly<Record<string, unknown>>

/** A test of a parsed value; `accepts` describes what it lets through, where it says so. */
export interface Test {
  (value: unknown): boolean
  readonly accepts?: JsonSchema
}

/**
 * Lets a test or a check say what it lets through, for the API's description: nothing reads it while a call
 * is served.
 */
export function accepting<Checked extends (...given: never[]) => unknown>(
  accepts: JsonSchema,
  check: Checked,
): Checked & { readonly accepts: JsonSchema } {
  return Object.assign(check, { accepts })
}

/** The schema of what must be so wherever something else is. */
export function whenever(is: JsonSchema, must: JsonSchema): JsonSchema {
  return { anyOf: [{ not: is }, must] }
}
