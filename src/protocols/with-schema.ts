/** A schema of JSON Schema, 2020-12. */
export type JsonSchema = Readonly<Record<string, unknown>>

/** A test of a parsed value; `accepts` describes what it lets through, where it says so. */
export interface ValueTest {
  (value: unknown): boolean
  readonly schema?: JsonSchema
}

/**
 * Lets a test or a check say what it lets through, for the API's description: nothing reads it while a call
 * is served.
 */
export function withSchema<Checked extends (...given: never[]) => unknown>(
  schema: JsonSchema,
  check: Checked,
): Checked & { readonly accepts: JsonSchema } {
  return Object.assign(check, { accepts: schema })
}

/** The schema of what must be so wherever something else is. */
export function implies(is: JsonSchema, must: JsonSchema): JsonSchema {
  return { anyOf: [{ not: is }, must] }
}
