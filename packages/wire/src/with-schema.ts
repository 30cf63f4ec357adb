/** A JSON Schema, version 2020-12. */
export type JsonSchema = Readonly<Record<string, unknown>>

/** Test of a parsed value. `schema`, if given, describes the values that pass. */
export interface ValueTest {
  (value: unknown): boolean
  readonly schema?: JsonSchema
}

/** Attaches a JSON Schema to a test or a check; it is used only to describe the API. */
export function withSchema<Checked extends (...given: never[]) => unknown>(
  schema: JsonSchema,
  check: Checked,
): Checked & { readonly schema: JsonSchema } {
  return Object.assign(check, { schema })
}

/** Schema that requires `must` if `is` matches. */
export function implies(is: JsonSchema, must: JsonSchema): JsonSchema {
  return { anyOf: [{ not: is }, must] }
}
