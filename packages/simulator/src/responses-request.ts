import { type CacheBlock, contentBlocks } from './block-cache.ts'
import { withoutBreakpoints } from './cache-diagnostics.ts'
import { type ConversationStep, conversationState } from './conversation.ts'
import { type Fields, asFields, asList, asNumber, asString } from './fields.ts'
import { IMAGE_PLACEHOLDER } from './media.ts'
import type { Prompt, Tool, ToolChoice } from './prompt.ts'
import { Refusal } from './refusal.ts'

const MIN_OUTPUT_TOKENS = 1
const MAX_TOKENS = 4096

/** Schema for the input of a custom tool, which is plain text. */
const TEXT_SCHEMA = { type: 'object', properties: { input: { type: 'string' } }, required: ['input'] }

/** Returns the items of a request's input. A plain text is one message. */
export function inputItems(input: unknown): Fields[] {
  return typeof input === 'string' ? [{ role: 'user', content: input }] : asList(input).map(asFields)
}

/**
 * Reads a request of the Responses API as a prompt. `items` contains the items of the response that it
 * continues, then its own input. Throws `Refusal` where a provider would.
 */
export function responsesPrompt(body: Fields, items: readonly Fields[], model: string): Prompt {
  if (items.length === 0 && body.generate !== false)
    throw new Refusal('malformed', "Invalid 'input': a text or items are required")
  const maxTokens = asNumber(body.max_output_tokens) ?? MAX_TOKENS
  if (maxTokens < MIN_OUTPUT_TOKENS) {
    throw new Refusal('malformed', `Invalid 'max_output_tokens': ${MIN_OUTPUT_TOKENS} or more is expected`)
  }
  requireCalls(items)
  const offered = [...asList(body.tools), ...items.flatMap(({ type, tools }) => additional(type, tools))]
  const tools = offered.map(asFields).flatMap((tool) => asTools(tool))
  const instructions = asString(body.instructions)
  const { effort } = asFields(body.reasoning)
  return {
    model,
    transcript: [JSON.stringify(tools), instructions, ...items.map(transcribed)].join('\n'),
    ...conversationState([{ kind: 'system', text: instructions }, ...items.flatMap(steps)]),
    tools,
    toolChoice: choice(body.tool_choice),
    parallelTools: body.parallel_tool_calls !== false,
    announcesTools: false,
    thinks:
      effort !== undefined ? effort !== 'none' && effort !== null : asFields(body.reasoning).summary != null,
    jsonSchema: jsonSchema(asFields(asFields(body.text).format)),
    maxTokens,
    stop: [],
  }
}

/** Throws `Refusal` unless the call of each tool output precedes it. */
function requireCalls(items: readonly Fields[]): void {
  const called = new Set<string>()
  for (const { type, call_id } of items) {
    if (isCall(type)) called.add(asString(call_id))
    else if (isOutput(type) && call_id !== undefined && !called.has(asString(call_id)))
      throw new Refusal(
        'malformed',
        `No tool call found for the output of call ${asString(call_id).slice(0, 64)}`,
      )
  }
}

function isCall(type: unknown): boolean {
  return asString(type).endsWith('_call')
}

function isOutput(type: unknown): boolean {
  return asString(type).endsWith('_call_output')
}

function additional(type: unknown, tools: unknown): readonly unknown[] {
  return type === 'additional_tools' || type === 'tool_search_output' ? asList(tools) : []
}

/**
 * Returns functions and custom tools, including those of a namespace, but not tools that a provider runs
 * itself.
 */
function asTools(tool: Fields, namespace?: string): Tool[] {
  const { type, description, parameters } = tool
  const name = asString(tool.name)
  const group = namespace === undefined ? {} : { namespace }
  if (type === 'namespace')
    return asList(tool.tools)
      .map(asFields)
      .flatMap((inner) => asTools(inner, name))
  if (type === 'function')
    return [{ name, description: asString(description), schema: asFields(parameters), ...group }]
  if (type === 'custom')
    return [{ name, description: asString(description), schema: TEXT_SCHEMA, takesText: true, ...group }]
  return []
}

function choice(value: unknown): ToolChoice {
  if (value === 'none' || value === 'required') return value
  const name = asString(asFields(value).name)
  return name === '' ? 'auto' : { name }
}

function jsonSchema({ type, schema }: Fields): Fields | undefined {
  if (type === 'json_schema') return asFields(schema)
  return type === 'json_object'
    ? { type: 'object', properties: { answer: {} }, required: ['answer'] }
    : undefined
}

function steps({ type, role, content, output }: Fields): ConversationStep[] {
  if (isCall(type)) return [{ kind: 'model', calls: 1 }]
  if (isOutput(type)) return [{ kind: 'result', text: writtenText(output) }]
  if (role === 'user')
    return [{ kind: 'user', text: writtenText(content), hasMedia: parts(content).some(isMedia) }]
  if (role === 'system' || role === 'developer') return [{ kind: 'system', text: writtenText(content) }]
  return []
}

function isMedia({ text }: Fields): boolean {
  return typeof text !== 'string'
}

/** Renders an item in the form in which the model reads it. */
function transcribed(item: Fields): string {
  const { type, role, content, output, summary } = item
  if (isCall(type)) return JSON.stringify({ ...item, id: undefined, status: undefined })
  const text = [content, output, summary]
    .flatMap(parts)
    .map((part) => (isMedia(part) ? IMAGE_PLACEHOLDER : asString(part.text)))
  return `${asString(role ?? type)}: ${text.join('\n')}`
}

function parts(content: unknown): Fields[] {
  return typeof content === 'string' ? [{ text: content }] : asList(content).map(asFields)
}

function writtenText(content: unknown): string {
  return parts(content)
    .map(({ text }) => asString(text))
    .join('\n')
}

/**
 * Splits a request into the parts that are cached, with their breakpoints. A plain text is treated like a
 * list with one text.
 */
export function responsesBlocks(body: Fields, items: readonly Fields[]): CacheBlock[] {
  const tools = withoutBreakpoints(asList(body.tools))
  const instructions = asString(body.instructions)
  return [
    { content: tools, characters: tools.length },
    { content: instructions, characters: instructions.length },
    ...items.flatMap((item): CacheBlock[] => {
      if (isCall(item.type)) {
        const text = transcribed(item)
        return [{ content: text, characters: text.length }]
      }
      const { role, type, content, output, summary } = item
      return [
        { content: asString(role ?? type), characters: 0, isSetting: true },
        ...[content, output, summary].flatMap(contentBlocks),
      ]
    }),
  ]
}
