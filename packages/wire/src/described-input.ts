/** Description and schema of the function that is sent in place of a tool of another kind. */
export interface DescribedInput {
  readonly description: string
  /** JSON schema of the tool's input, as text. */
  readonly schema: string
}

/** Describes the input of a tool by the schemas of its members. */
export function described(
  description: string,
  properties: object,
  required: readonly string[],
): DescribedInput {
  return {
    description,
    schema: JSON.stringify({ type: 'object', properties, required, additionalProperties: false }),
  }
}
