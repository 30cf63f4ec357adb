import type { CacheBlock } from './block-cache.ts'
import { withoutBreakpoints } from './cache-diagnostics.ts'
import { type ConversationStep, conversationState } from './conversation.ts'
import { type Fields, asFields, asList, asNumber, asString } from './fields.ts'
import { IMAGE_PLACEHOLDER } from './media.ts'
import type { Prompt, Tool, ToolChoice } from './prompt.ts'
import { Refusal } from './refusal.ts'

const MIN_THINKING_TOKENS = 1024
const MAX_MARKS = 4

/** Reads a messages request as a prompt; throws `Refusal` if a provider would refuse it. */
export function messagesPrompt(
  body: Fields,
  model: string,
): { prompt: Prompt; cached: readonly CacheBlock[] } {
  const messages = asList(body.messages).map(asFields)
  if (messages.length === 0) throw new Refusal('malformed', 'messages: at least one message is required')
  const maxTokens = asNumber(body.max_tokens)
  if (maxTokens === undefined || maxTokens < 1) throw new Refusal('malformed', 'max_tokens: Field required')
  const tools = asList(body.tools).map(asFields)
  const { transcript, cached } = transcribed(tools, body, messages)
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
  return { prompt, cached }
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

function system(content: unknown): ConversationStep[] {
  return [{ kind: 'system', text: writtenText(blocks(content)) }]
}

/** Splits a turn into steps: the tool results first, then the text. */
function steps({ role, content }: Fields): ConversationStep[] {
  const all = blocks(content)
  if (role === 'system') return system(content)
  if (role === 'assistant') {
    return [{ kind: 'model', calls: all.filter(({ type }) => type === 'tool_use').length }]
  }
  const results = all.filter(({ type }) => type === 'tool_result')
  const own = all.filter(({ type }) => type !== 'tool_result')
  return [
    ...results.map(
      (result): ConversationStep => ({ kind: 'result', text: writtenText(blocks(result.content)) }),
    ),
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

/** Renders the prompt in the order in which it is cached, and its parts with their cache breakpoints. */
function transcribed(
  tools: readonly Fields[],
  body: Fields,
  messages: readonly Fields[],
): { transcript: string; cached: readonly CacheBlock[] } {
  let transcript = ''
  const cached: CacheBlock[] = []
  const setting = (content: string, text = ''): void => {
    transcript += text
    cached.push({ content, characters: text.length, isSetting: true })
  }
  const add = (text: string, block: Fields): void => {
    transcript += `${text}\n`
    const mark = lifetimeOf(block.cache_control)
    cached.push({ content: withoutBreakpoints(block), characters: text.length + 1, ...(mark && { mark }) })
  }
  for (const { cache_control, ...tool } of tools) add(JSON.stringify(tool), { ...tool, cache_control })
  for (const block of blocks(body.system)) add(blockText(block), block)
  // If tool choice or thinking change, cached messages are invalid, but cached tools and system texts stay
  // valid.
  setting(JSON.stringify([body.tool_choice, body.thinking]))
  for (const { role, content } of messages) {
    setting(asString(role), `${asString(role)}:\n`)
    for (const block of blocks(content)) add(blockText(block), block)
  }
  transcript += '\n'
  return { transcript, cached: requireOrder(withAutomatic(cached, lifetimeOf(body.cache_control))) }
}

function lifetimeOf(control: unknown): '5m' | '1h' | undefined {
  if (control === undefined || control === null) return undefined
  return asFields(control).ttl === '1h' ? '1h' : '5m'
}

/**
 * Marks the last block as a cache breakpoint, which is the effect of `cache_control` for the whole request.
 */
function withAutomatic(cached: readonly CacheBlock[], mark: '5m' | '1h' | undefined): CacheBlock[] {
  const last = cached.findLastIndex(({ isSetting }) => isSetting !== true)
  const own = cached[last]?.mark
  if (mark !== undefined && own !== undefined && own !== mark)
    throw new Refusal('malformed', 'cache_control: the last block is marked with another ttl')
  return cached.map((block, at) => (mark !== undefined && at === last ? { ...block, mark } : block))
}

/** Throws `Refusal` if there are more than four breakpoints, or a longer lifetime follows a shorter one. */
function requireOrder(cached: readonly CacheBlock[]): readonly CacheBlock[] {
  const marks = cached.flatMap(({ mark }) => (mark === undefined ? [] : [mark]))
  if (marks.length > MAX_MARKS) {
    const found = `A maximum of 4 blocks with cache_control may be provided. Found ${marks.length}.`
    throw new Refusal('malformed', found)
  }
  if (marks.lastIndexOf('1h') > marks.indexOf('5m') && marks.includes('5m'))
    throw new Refusal('malformed', "a ttl='1h' cache_control block must not come after a ttl='5m' block")
  return cached
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
