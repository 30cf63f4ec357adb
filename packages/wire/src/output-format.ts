import type { Conversation, OutputFormat, OutputSchema, Tool } from './conversation.ts'
import { requireBoolean, type Fields, nullToUndefined, requireText } from './field.ts'
import { type MemberText, jsonMembersOf } from './json/json-edit.ts'
import { parseRecord } from './json/record.ts'

/** Kinds of output formats, by the type used in chat and in responses requests. */
export const FORMAT_KINDS: ReadonlyMap<string, OutputFormat['kind'] | 'text'> = new Map([
  ['text', 'text'],
  ['json_object', 'json-object'],
  ['json_schema', 'json-schema'],
])

/** Name that is sent for a schema without one, if the protocol requires a name. */
const UNNAMED = 'response'
/** Matches the names of tools that upstreams accept. */
const TOOL_NAME = /^[\w-]{1,64}$/

const JSON_ONLY = 'with nothing else: no text before or after it, and no code fence.'

/** A conversation in which the output format, if there is one, is a schema that the model can follow. */
export type ConversationWithSchema = Conversation & { readonly outputFormat: OutputSchema | undefined }

/**
 * Returns the output format for a schema and for the members at `path` that name and describe it. Without a
 * schema, the format is any JSON object. Throws `invalid_request` with the path of an invalid member.
 */
export function schemaFormat(
  schema: string | undefined,
  { name, description, strict }: Fields,
  path: string,
): OutputFormat {
  if (schema === undefined) return { kind: 'json-object' }
  return {
    kind: 'json-schema',
    schema,
    name: nullToUndefined(name) === undefined ? undefined : requireText(name, `${path}.name`),
    description:
      nullToUndefined(description) === undefined
        ? undefined
        : requireText(description, `${path}.description`),
    strict: nullToUndefined(strict) === undefined ? undefined : requireBoolean(strict, `${path}.strict`),
  }
}

/** Encodes a schema, with the members that name and describe it. */
export function schemaMembers({ name = UNNAMED, description, schema, strict }: OutputSchema): MemberText[] {
  return [...jsonMembersOf({ name, description }), ['schema', schema], ...jsonMembersOf({ strict })]
}

/** Adds the format to the system prompt as an instruction, for a model that cannot be forced to follow it. */
export function withFormatAsInstruction(
  conversation: Conversation,
  format: OutputFormat,
): ConversationWithSchema {
  const text =
    format.kind === 'json-object'
      ? `Answer with a JSON object and ${JSON_ONLY}`
      : `Answer with JSON that matches the following JSON schema, and ${JSON_ONLY}\n\n${format.schema}`
  return {
    ...conversation,
    outputFormat: undefined,
    system: [...conversation.system, { kind: 'text', text }],
  }
}

/**
 * Adds the instruction for a JSON object to a prompt that does not begin with the word, because OpenAI and others
 * refuse `json_object` without it. Only the beginning counts: it stays the same as the conversation goes on.
 */
export function withWordForJson(conversation: Conversation): Conversation {
  const { outputFormat, system, turns } = conversation
  if (outputFormat?.kind !== 'json-object') return conversation
  const begin = [...system.filter(({ at }) => at === undefined), ...(turns[0]?.parts ?? [])]
  if (begin.some((part) => part.kind === 'text' && /json/i.test(part.text))) return conversation
  return { ...withFormatAsInstruction(conversation, outputFormat), outputFormat }
}

/** Replaces the format by a tool that the model must call, whose input is the text of the reply. */
export function withFormatAsTool(
  conversation: Conversation,
  { description, schema }: OutputSchema,
  name: string,
): ConversationWithSchema {
  const tool: Tool = { name, description, schema, strict: undefined }
  return { ...conversation, outputFormat: undefined, tools: [tool], toolChoice: { kind: 'tool', name } }
}

/** Name of the tool that replaces an output format; undefined if the schema does not describe an object. */
export function answerToolName({ schema, name }: OutputSchema): string | undefined {
  const type = parseRecord(schema)?.['type']
  if (type !== undefined && type !== 'object') return undefined
  return acceptedSchemaName(name) ?? UNNAMED
}

/** Returns the name of a schema if upstreams accept it; otherwise undefined. */
export function acceptedSchemaName(name: string | undefined): string | undefined {
  return name !== undefined && TOOL_NAME.test(name) ? name : undefined
}
