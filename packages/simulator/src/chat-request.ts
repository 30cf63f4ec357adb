import { type CacheBlock, contentBlocks } from './block-cache.ts'
import { withoutBreakpoints } from './cache-diagnostics.ts'
import { type ConversationStep, conversationState } from './conversation.ts'
import { type Fields, asFields, asList, asNumber, asString } from './fields.ts'
import { IMAGE_PLACEHOLDER } from './media.ts'
import type { Prompt, Tool, ToolChoice } from './prompt.ts'
import { Refusal } from './refusal.ts'

const MAX_TOKENS = 4096

/** Reads a chat request as a prompt; throws `Refusal` if a provider would refuse it. */
export function chatPrompt(body: Fields, model: string): Prompt {
  const messages = asList(body.messages).map(asFields)
  if (messages.length === 0)
    throw new Refusal('malformed', "Invalid 'messages': an array of messages is required")
  const maxTokens = asNumber(body.max_completion_tokens) ?? asNumber(body.max_tokens) ?? MAX_TOKENS
  if (maxTokens < 1) throw new Refusal('malformed', "Invalid 'max_completion_tokens': 1 or more is expected")
  const tools = asList(body.tools).map(asFields).filter(isFunction).map(asTool)
  return {
    model,
    transcript: [JSON.stringify(tools), ...messages.map(transcribed)].join('\n'),
    ...conversationState(messages.map(step)),
    tools,
    toolChoice: choice(body.tool_choice),
    parallelTools: body.parallel_tool_calls !== false,
    announcesTools: false,
    thinks: model.includes('reason'),
    jsonSchema: jsonSchema(asFields(body.response_format)),
    maxTokens,
    stop: typeof body.stop === 'string' ? [body.stop] : asList(body.stop).map(asString),
  }
}

function step({ role, content, tool_calls }: Fields): ConversationStep {
  const text = writtenText(content)
  if (role === 'assistant') return { kind: 'model', calls: asList(tool_calls).length }
  if (role === 'tool') return { kind: 'result', text }
  if (role === 'user') return { kind: 'user', text, hasMedia: asList(content).some(isMedia) }
  return { kind: 'system', text }
}

function isMedia(part: unknown): boolean {
  return typeof asFields(part).text !== 'string'
}

function isFunction({ type }: Fields): boolean {
  return type === 'function'
}

function asTool(tool: Fields): Tool {
  const { name, description, parameters } = asFields(tool.function)
  return { name: asString(name), description: asString(description), schema: asFields(parameters) }
}

function choice(value: unknown): ToolChoice {
  if (value === 'none' || value === 'required') return value
  const name = asString(asFields(asFields(value).function).name)
  return name === '' ? 'auto' : { name }
}

function jsonSchema(format: Fields): Fields | undefined {
  if (format.type === 'json_schema') return asFields(asFields(format.json_schema).schema)
  if (format.type === 'json_object')
    return { type: 'object', properties: { answer: {} }, required: ['answer'] }
  return undefined
}

function transcribed(message: Fields): string {
  const calls = message.tool_calls === undefined ? '' : JSON.stringify(message.tool_calls)
  return `${asString(message.role)}: ${contentText(message.content)}${calls}`
}

function contentText(content: unknown): string {
  if (typeof content === 'string') return content
  const parts = asList(content).map(asFields)
  return parts.map((part) => (typeof part.text === 'string' ? part.text : IMAGE_PLACEHOLDER)).join('\n')
}

/** Collects the text of a message. */
function writtenText(content: unknown): string {
  if (typeof content === 'string') return content
  return asList(content)
    .map((part) => asString(asFields(part).text))
    .join('\n')
}

/**
 * Splits a request into the parts that are cached, with their breakpoints. A plain text is treated like a
 * list with one text.
 */
export function chatBlocks(body: Fields): CacheBlock[] {
  const tools = withoutBreakpoints(asList(body.tools))
  return [
    { content: tools, characters: tools.length },
    ...asList(body.messages)
      .map(asFields)
      .flatMap(({ role, content, ...message }): CacheBlock[] => [
        { content: asString(role), characters: 0, isSetting: true },
        ...contentBlocks(content),
        ...(Object.keys(message).length > 0
          ? [{ content: withoutBreakpoints(message), characters: calledText(message).length }]
          : []),
      ]),
  ]
}

function calledText({ tool_calls }: Fields): string {
  return tool_calls === undefined ? '' : JSON.stringify(tool_calls)
}
