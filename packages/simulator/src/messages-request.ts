import { type Step, conversationState } from './conversation.ts'
import { type Fields, asFields, asList, asNumber, asString } from './fields.ts'
import { IMAGE_PLACEHOLDER } from './media.ts'
import type { Prompt, Tool, ToolChoice } from './prompt.ts'
import { Refusal } from './refusal.ts'

const MIN_THINKING_TOKENS = 1024

/** Part of the prompt to cache, in characters of the transcript, and its lifetime. */
export interface CacheMark {
  readonly characters: number
  readonly ttl: '5m' | '1h'
}

/** Reads a messages request as a prompt; throws `Refusal` where a provider would. */
export function messagesPrompt(body: Fields, model: string): { prompt: Prompt; mark: CacheMark | undefined } {
  const messages = asList(body.messages).map(asFields)
  if (messages.length === 0) throw new Refusal('malformed', 'messages: at least one message is required')
  const maxTokens = asNumber(body.max_tokens)
  if (maxTokens === undefined || maxTokens < 1) throw new Refusal('malformed', 'max_tokens: Field required')
  const tools = asList(body.tools).map(asFields)
  const { transcript, mark } = transcribed(tools, body, messages)
  const prompt: Prompt = {
    model,
    transcript,
    ...conversationState([...system(body.system), ...messages.flatMap(steps)]),
    tools: tools.filter(({ input_schema }) => input_schema !== undefined).map(asTool),
    toolChoice: choice(asFields(body.tool_choice)),
    parallelTools: asFields(body.tool_choice).disable_parallel_tool_use !== true,
    announcesTools: true,
    thinks: thinks(asFields(body.thinking), maxTokens),
    jsonSchema: jsonSchema(body),
    maxTokens,
    stop: asList(body.stop_sequences).map(asString),
  }
  return { prompt, mark }
}

function thinks({ type, budget_tokens }: Fields, maxTokens: number): boolean {
  if (type !== 'enabled') return type === 'adaptive'
  const budget = asNumber(budget_tokens) ?? 0
  if (budget < MIN_THINKING_TOKENS) {
    throw new Refusal('malformed', 'thinking.budget_tokens: 1024 or more is expected')
  }
  if (budget >= maxTokens) {
    throw new Refusal('malformed', 'max_tokens: more than thinking.budget_tokens is expected')
  }
  return true
}

function asTool({ name, description, input_schema }: Fields): Tool {
  return { name: asString(name), description: asString(description), schema: asFields(input_schema) }
}

function choice({ type, name }: Fields): ToolChoice {
  if (type === 'none') return 'none'
  if (type === 'any') return 'required'
  return type === 'tool' ? { name: asString(name) } : 'auto'
}

/** Reads the schema of `output_config.format`, or of the beta's `output_format`. */
function jsonSchema({ output_config, output_format }: Fields): Fields | undefined {
  const { type, schema } = asFields(asFields(output_config).format ?? output_format)
  return type === 'json_schema' ? asFields(schema) : undefined
}

function system(content: unknown): Step[] {
  return [{ kind: 'system', text: writtenText(blocks(content)) }]
}

/** Splits a turn into steps: tool results first, then the text. */
function steps({ role, content }: Fields): Step[] {
  const all = blocks(content)
  if (role === 'system') return system(content)
  if (role === 'assistant') {
    return [{ kind: 'model', calls: all.filter(({ type }) => type === 'tool_use').length }]
  }
  const results = all.filter(({ type }) => type === 'tool_result')
  const own = all.filter(({ type }) => type !== 'tool_result')
  return [
    ...results.map((result): Step => ({ kind: 'result', text: writtenText(blocks(result.content)) })),
    { kind: 'user', text: writtenText(own), hasMedia: own.some(({ type }) => type !== 'text') },
  ]
}

/** Collects the text of blocks. */
function writtenText(content: readonly Fields[]): string {
  return content
    .filter(({ type }) => type === 'text')
    .map(({ text }) => asString(text))
    .join('\n')
}

/** Renders the prompt in caching order, and finds the position of the last `cache_control`. */
function transcribed(
  tools: readonly Fields[],
  body: Fields,
  messages: readonly Fields[],
): { transcript: string; mark: CacheMark | undefined } {
  let transcript = ''
  let mark: CacheMark | undefined
  const add = (text: string, cacheControl: unknown): void => {
    transcript += `${text}\n`
    if (cacheControl === undefined || cacheControl === null) return
    mark = { characters: transcript.length, ttl: asFields(cacheControl).ttl === '1h' ? '1h' : '5m' }
  }
  for (const { cache_control, ...tool } of tools) add(JSON.stringify(tool), cache_control)
  for (const block of blocks(body.system)) add(blockText(block), block.cache_control)
  for (const { role, content } of messages) {
    add(`${asString(role)}:`, undefined)
    for (const block of blocks(content)) add(blockText(block), block.cache_control)
  }
  add('', body.cache_control)
  return { transcript, mark }
}

function blocks(content: unknown): Fields[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : asList(content).map(asFields)
}

function contentText(content: unknown): string {
  return blocks(content).map(blockText).join('\n')
}

function blockText(block: Fields): string {
  switch (block.type) {
    case 'text':
      return asString(block.text)
    case 'tool_use':
      return `${asString(block.name)} ${JSON.stringify(block.input)}`
    case 'tool_result':
      return contentText(block.content)
    case 'thinking':
      return asString(block.thinking)
    default:
      return IMAGE_PLACEHOLDER
  }
}
