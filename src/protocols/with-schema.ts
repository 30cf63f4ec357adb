/** A schema of JSON Schema, 2020-12. */
export type JsonSchema = Readonly<Record<string, unknown>>

/** Test of a parsed value; `schema` describes the values that pass, where it is given. */
export interface ValueTest {
  (value: unknown): boolean
  readonly schema?: JsonSchema
}

/** Attaches a JSON Schema to a test or a check, for the description of the API alone. */
export function withSchema<Checked extends (...given: never[]) => unknown>(
  schema: JsonSchema,
  check: Checked,
): Checked & { readonly schema: JsonSchema } {
  return Object.assign(check, { schema })
}

/** Schema that demands `must` wherever `is` holds. */
export function implies(is: JsonSchema, must: JsonSchema): JsonSchema {
  return { anyOf: [{ not: is }, must] }
}
