import {
  bearerToken,
  type Frame,
  bodyOfPost,
  Refusal,
  type Reply,
  type ReplyTimeAndIds,
  type Upstream,
} from '@sluice/simulator'
import { type Fields, asFields, asList, asString } from '@sluice/simulator/fields'
import { type ModelInput, nextTurn, type OfferedTool, pieces, tokensOf } from './model.ts'

const ENCRYPTED = 'gAAAAencrypted-by-the-model-that-thought-it'

/** An item, and the events between its beginning and its end. */
interface Item {
  readonly whole: Fields
  readonly started: Fields
  readonly events: readonly Fields[]
}

/** A tool, with the name that the client knows. */
interface KnownTool extends OfferedTool {
  readonly type: 'function' | 'custom' | 'tool_search'
  readonly namespace: string | undefined
}

/** The model behind the Responses API, as strict about items as the provider is. */
export function responsesUpstream(models: readonly string[]): Upstream {
  return {
    bodyIfServed: bodyOfPost('/responses'),
    models,
    keyOf: bearerToken,
    reply,
    refuse: ({ message }) => ({
      error: { message, type: 'invalid_request_error', param: 'input', code: null },
    }),
  }
}

function reply(body: Fields, model: string, stamp: ReplyTimeAndIds): Reply {
  const input = asList(body.input).map(asFields)
  requireOrder(input)
  const tools = toolsOf(body, input)
  const { thinking, text, calls } = nextTurn(modelInput(input, tools))
  const items = [
    ...(thinking === '' || asList(body.include).length === 0 ? [] : [thought(stamp)]),
    ...(text === '' ? [] : [message(text, stamp)]),
    ...calls.map(({ name, input: args }) =>
      call(
        tools.find((tool) => tool.name === name),
        args,
        stamp,
      ),
    ),
  ]
  const prompt = tokensOf(JSON.stringify(body))
  const output = tokensOf(thinking + text + JSON.stringify(calls))
  const usage = {
    input_tokens: prompt,
    input_tokens_details: { cached_tokens: Math.floor(prompt / 256) * 128 },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: tokensOf(thinking) },
    total_tokens: prompt + output,
  }
  const head = { id: stamp.id('resp_'), object: 'response', created_at: stamp.created, model }
  const end = { ...head, status: 'completed', output: items.map(({ whole }) => whole), usage }
  if (body.stream !== true) return { kind: 'whole', body: end, tokens: 0 }
  const events: Fields[] = [
    { type: 'response.created', response: { ...head, status: 'in_progress', output: [] } },
    ...items.flatMap(({ whole, started, events: between }, output_index) => [
      { type: 'response.output_item.added', output_index, item: started },
      ...between.map((event) => ({ ...event, item_id: whole.id, output_index })),
      { type: 'response.output_item.done', output_index, item: whole },
    ]),
    { type: 'response.completed', response: end },
  ]
  const frames = events.map(
    (event, sequence_number): Frame => ({
      text: `event: ${asString(event.type)}\ndata: ${JSON.stringify({ ...event, sequence_number })}\n\n`,
      tokens: 1,
    }),
  )
  return { kind: 'stream', frames }
}

function thought(stamp: ReplyTimeAndIds): Item {
  const whole = { id: stamp.id('rs_'), type: 'reasoning', summary: [], encrypted_content: ENCRYPTED }
  return { whole, started: { ...whole, encrypted_content: '' }, events: [] }
}

function message(text: string, stamp: ReplyTimeAndIds): Item {
  const item = { id: stamp.id('msg_'), type: 'message', role: 'assistant' }
  const part = { type: 'output_text', text, annotations: [] }
  return {
    whole: { ...item, status: 'completed', content: [part] },
    started: { ...item, status: 'in_progress', content: [] },
    events: [
      { type: 'response.content_part.added', content_index: 0, part: { ...part, text: '' } },
      ...pieces(text).map((delta) => ({ type: 'response.output_text.delta', content_index: 0, delta })),
      { type: 'response.output_text.done', content_index: 0, text },
      { type: 'response.content_part.done', content_index: 0, part },
    ],
  }
}

function call(tool: KnownTool | undefined, args: string, stamp: ReplyTimeAndIds): Item {
  const call_id = stamp.id('call_')
  if (tool?.type === 'tool_search') {
    const item = { id: stamp.id('tsc_'), type: 'tool_search_call', call_id, execution: 'client' }
    const whole = { ...item, status: 'completed', arguments: JSON.parse(args) as unknown }
    return { whole, started: { ...whole, status: 'in_progress' }, events: [] }
  }
  const isCustom = tool?.type === 'custom'
  const text = isCustom ? asString(asFields(JSON.parse(args)).input) : args
  const member = isCustom ? 'input' : 'arguments'
  const event = isCustom ? 'response.custom_tool_call_input' : 'response.function_call_arguments'
  const item = {
    id: stamp.id(isCustom ? 'ctc_' : 'fc_'),
    type: isCustom ? 'custom_tool_call' : 'function_call',
    call_id,
    name: tool?.name,
    ...(tool?.namespace !== undefined && { namespace: tool.namespace }),
  }
  return {
    whole: { ...item, status: 'completed', [member]: text },
    started: { ...item, status: 'in_progress', [member]: '' },
    events: [
      ...pieces(text).map((delta) => ({ type: `${event}.delta`, delta })),
      { type: `${event}.done`, [member]: text },
    ],
  }
}

/** The tools of the request and of its items, also those that a search found. */
function toolsOf(body: Fields, input: readonly Fields[]): KnownTool[] {
  const found = input.filter(({ type }) => type === 'additional_tools' || type === 'tool_search_output')
  return [body, ...found].flatMap(({ tools }) => asList(tools)).flatMap((tool) => knownTools(asFields(tool)))
}

function knownTools(tool: Fields, namespace?: string): KnownTool[] {
  const { type, parameters } = tool
  const name = asString(tool.name)
  if (type === 'namespace') return asList(tool.tools).flatMap((inner) => knownTools(asFields(inner), name))
  if (type === 'function' || type === 'custom')
    return [{ type, name, schema: asFields(parameters), namespace }]
  return type === 'tool_search' ? [{ type, name: type, schema: asFields(parameters), namespace }] : []
}

function modelInput(input: readonly Fields[], tools: readonly KnownTool[]): ModelInput {
  return {
    user: input
      .filter(({ role }) => role === 'user')
      .map(({ content }) => textOf(content))
      .join('\n'),
    results: input.filter(({ type }) => isOutput(type)).map(({ output }) => textOf(output)),
    tools,
  }
}

// Requires a call for each output and an output for each call, encrypted thoughts unchanged and before the
// items that they led to, and only the roles of the API.
function requireOrder(input: readonly Fields[]): void {
  const open = new Map<string, string>()
  for (const [at, item] of input.entries()) {
    const { type, role, call_id, encrypted_content } = item
    const id = asString(call_id)
    if (isOutput(type)) {
      if (open.get(id) !== outputOf(type)) throw new Refusal('malformed', `No tool call found for ${id}`)
      open.delete(id)
    } else if (asString(type).endsWith('_call')) open.set(id, `${asString(type)}_output`)
    else if (type === 'message' && !ROLES.has(asString(role)))
      throw new Refusal('malformed', `unknown role ${asString(role)}`)
    else if (type === 'reasoning') {
      if (encrypted_content !== ENCRYPTED) throw new Refusal('malformed', 'The thoughts cannot be decrypted')
      const next = input[at + 1]
      if (next?.role !== 'assistant' && !asString(next?.type).endsWith('_call'))
        throw new Refusal('malformed', 'reasoning was provided without its required following item')
    }
  }
  for (const id of open.keys()) throw new Refusal('malformed', `No tool output found for call ${id}`)
}

const ROLES = new Set(['user', 'assistant', 'system', 'developer'])

function isOutput(type: unknown): boolean {
  return asString(type).endsWith('_output')
}

function outputOf(type: unknown): string {
  return type === 'tool_search_output' ? 'tool_search_call_output' : asString(type)
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  return asList(content)
    .map((part) => asString(asFields(part).text))
    .join('\n')
}
