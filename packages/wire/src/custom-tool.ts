import type { Grammar } from './conversation.ts'

/** Member of a function's arguments that contains the text of a custom tool. */
export const CUSTOM_MEMBER = 'input'

const CUSTOM_SCHEMA = JSON.stringify({
  type: 'object',
  properties: {
    [CUSTOM_MEMBER]: { type: 'string', description: 'The whole input of the tool, as plain text.' },
  },
  required: [CUSTOM_MEMBER],
  additionalProperties: false,
})

/**
 * Description and schema of the function that replaces a custom tool. The description contains the grammar.
 */
export function customTool(
  description: string | undefined,
  grammar: Grammar | undefined,
): { readonly description: string; readonly schema: string } {
  const rule =
    grammar &&
    `The value of "${CUSTOM_MEMBER}" must match this ${grammar.syntax} grammar:\n${grammar.definition}`
  return {
    description: [description, rule].filter((part) => part !== undefined && part !== '').join('\n\n'),
    schema: CUSTOM_SCHEMA,
  }
}

/** Renders the text of a custom tool's input as a function's arguments in JSON. */
export function customArguments(input: string): string {
  return JSON.stringify({ [CUSTOM_MEMBER]: input })
}
