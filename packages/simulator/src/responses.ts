import { type Fields, asFields, asList, asString } from './fields.ts'
import type { CacheUse } from './block-cache.ts'
import { CacheDiagnostics } from './cache-diagnostics.ts'
import type { CallCaches } from './messages.ts'
import { useOpenAiCache } from './openai-cache.ts'
import { type ModelOutput, generateOutput } from './model-output.ts'
import { type OutputItem, outputItems } from './output-items.ts'
import type { PromptCache } from './prompt-cache.ts'
import { Refusal, type RefusalKind } from './refusal.ts'
import type { ResponseHistory } from './response-history.ts'
import { inputItems, responsesBlocks, responsesPrompt } from './responses-request.ts'
import { openAiTier, openAiCacheWrites } from './service-tier.ts'
import { storedResponse } from './stored-responses.ts'
import { estimateTokens } from './tokens.ts'
import {
  bearerToken,
  type Call,
  type Frame,
  bodyOfPost,
  type Reply,
  type ReplyTimeAndIds,
  type Upstream,
} from './upstream.ts'

/** Creates a simulated provider of the Responses API, which remembers its responses. */
export function responsesUpstream(
  models: readonly string[],
  cache: PromptCache,
  history: ResponseHistory,
): Upstream {
  const diagnostics = new CacheDiagnostics()
  return {
    faults: 'responses',
    hasSockets: true,
    bodyIfServed: bodyOfPost('/responses'),
    models,
    keyOf: bearerToken,
    reply: (body, model, stamp, { account, history: ofSocket }) =>
      reply(body, model, stamp, { cache, diagnostics, account }, history, ofSocket),
    other: (call) => storedResponse(call, history) ?? countedTokens(call, history),
    refuse,
  }
}

function reply(
  body: Fields,
  model: string,
  stamp: ReplyTimeAndIds,
  { cache, diagnostics, account }: CallCaches,
  history: ResponseHistory,
  ofSocket: ResponseHistory | undefined,
): Reply {
  const items = conversationOf(body, history, ofSocket)
  const prompt = responsesPrompt(body, items, model)
  const output = body.generate === false ? NO_OUTPUT : generateOutput(prompt)
  const shown = {
    summary: typeof asFields(body.reasoning).summary === 'string',
    encrypted: asList(body.include).includes('reasoning.encrypted_content'),
  }
  const made = outputItems(output, shown, stamp)
  const complete = made.map((item) => item.complete)
  const id = stamp.id('resp_')
  const head = { id, object: 'response', created_at: stamp.created }
  const response = (state: object): Fields => ({ ...head, ...state, ...settings(body, model) })
  const { transcript } = prompt
  const blocks = responsesBlocks(body, items)
  const used = useOpenAiCache(cache, { account, model, body, transcript, blocks })
  const asked = { account, model, body, messages: items, transcript, read: used.read }
  const verdict = diagnostics.ofResponses(id, asked)
  const usage = usageOf(transcript, used, output, body)
  const end = response({
    ...ending(output, stamp),
    output: complete,
    usage,
    ...(verdict && { prompt_cache_diagnostics: verdict }),
  })
  ofSocket?.keep(end, items)
  if (body.store !== false) history.keep(end, items)
  if (body.stream !== true) return { kind: 'whole', body: end, tokens: output.tokens }
  // The first events of a stream repeat the requested tier, the last one states the tier that was served.
  const requested = { service_tier: body.service_tier ?? 'auto' }
  const start = { ...response({ ...IN_PROGRESS, output: [], usage: null }), ...requested }
  return { kind: 'stream', frames: frames(start, made, end) }
}

/** Returns the number of input tokens if the call only asks to count them; undefined for other calls. */
function countedTokens({ method, path, body }: Call, history: ResponseHistory): unknown {
  if (method !== 'POST' || path !== '/responses/input_tokens') return undefined
  const { transcript } = responsesPrompt(body, conversationOf(body, history), asString(body.model))
  return { object: 'response.input_tokens', input_tokens: estimateTokens(transcript.length) }
}

function conversationOf(
  body: Fields,
  history: ResponseHistory,
  ofSocket?: ResponseHistory,
): readonly Fields[] {
  const given = inputItems(body.input).map((item) => referredItem(item, history))
  return [...earlierItems(body, history, ofSocket), ...given]
}

/** Returns the conversation that the request continues; empty if it begins a new one. */
function earlierItems(
  { previous_response_id: id }: Fields,
  history: ResponseHistory,
  ofSocket: ResponseHistory | undefined,
): readonly Fields[] {
  if (typeof id !== 'string') return []
  const items = ofSocket?.upTo(id) ?? history.upTo(id)
  if (!items) throw new Refusal('unknown_response', id.slice(0, 100))
  return items
}

/** Returns the item to which an `item_reference` refers; returns other items unchanged. */
function referredItem(item: Fields, history: ResponseHistory): Fields {
  if (item.type !== 'item_reference') return item
  const found = history.item(asString(item.id))
  if (!found) throw new Refusal('malformed', `Item with id '${asString(item.id).slice(0, 100)}' not found.`)
  return found
}

/** Of a request that only prepares state. */
const NO_OUTPUT: ModelOutput = {
  thinking: [],
  text: [],
  calls: [],
  stopCause: 'done',
  stopText: null,
  tokens: 0,
}

const IN_PROGRESS = { status: 'in_progress', completed_at: null, error: null, incomplete_details: null }

function ending({ stopCause }: ModelOutput, { created }: ReplyTimeAndIds): object {
  const isCut = stopCause === 'length'
  return {
    status: isCut ? 'incomplete' : 'completed',
    completed_at: isCut ? null : created,
    error: null,
    incomplete_details: isCut ? { reason: 'max_output_tokens' } : null,
  }
}

/** Repeats the settings of a request, with default values for those that it omits. */
function settings(body: Fields, model: string): Fields {
  const given = Object.entries(DEFAULTS).map(([name, value]) => [name, body[name] ?? value])
  return {
    model,
    ...Object.fromEntries(given),
    tools: asList(body.tools).map(withFunctionMembers),
    reasoning: { ...asFields(DEFAULTS.reasoning), ...asFields(body.reasoning) },
    text: { ...asFields(DEFAULTS.text), ...asFields(body.text) },
    service_tier: openAiTier(body),
  }
}

/** Adds the members of a function that a response always has. */
function withFunctionMembers(tool: unknown): unknown {
  const fields = asFields(tool)
  return fields.type === 'function'
    ? { ...fields, description: fields.description ?? null, strict: fields.strict ?? true }
    : tool
}

const DEFAULTS: Fields = {
  background: false,
  frequency_penalty: 0,
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  metadata: {},
  parallel_tool_calls: true,
  presence_penalty: 0,
  previous_response_id: null,
  prompt_cache_key: null,
  prompt_cache_retention: null,
  reasoning: { effort: null, summary: null },
  safety_identifier: null,
  service_tier: 'default',
  store: true,
  temperature: 1,
  text: { format: { type: 'text' }, verbosity: 'medium' },
  tool_choice: 'auto',
  tools: [],
  top_logprobs: 0,
  top_p: 1,
  truncation: 'disabled',
  user: null,
}

function usageOf(
  transcript: string,
  used: CacheUse,
  { tokens, thinking }: ModelOutput,
  body: Fields,
): object {
  const input = estimateTokens(transcript.length)
  return {
    input_tokens: input,
    input_tokens_details: {
      cached_tokens: used.read,
      cache_write_tokens: 0,
      ...openAiCacheWrites(body, input, used),
    },
    output_tokens: tokens,
    output_tokens_details: { reasoning_tokens: thinking.length },
    total_tokens: input + tokens,
  }
}

/** Renders the events of a stream, with consecutive numbers. Nothing marks the end of the stream. */
function frames(start: Fields, items: readonly OutputItem[], end: Fields): Frame[] {
  let number = 0
  const frame = (type: string, data: object, tokens = 0): Frame => {
    const text =
      type === ''
        ? ''
        : `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: number++, ...data })}\n\n`
    return { text, tokens }
  }
  return [
    frame('response.created', { response: start }),
    frame('response.in_progress', { response: start }),
    ...items.flatMap(({ added, complete, events }, output_index) => [
      frame('response.output_item.added', { output_index, item: added }),
      ...events.map(({ type, data, tokens }) =>
        frame(type, { item_id: complete.id, output_index, ...data }, tokens),
      ),
      frame('response.output_item.done', { output_index, item: complete }),
    ]),
    frame(`response.${String(end.status)}`, { response: end }),
  ]
}

const CODE: Partial<Record<RefusalKind, string>> = {
  missing_key: 'invalid_api_key',
  unknown_model: 'model_not_found',
  unknown_path: 'unknown_url',
  unknown_response: 'previous_response_not_found',
}
const PARAM: Partial<Record<RefusalKind, string>> = {
  unknown_model: 'model',
  unknown_response: 'previous_response_id',
}

function refuse({ kind, message }: Refusal): unknown {
  return {
    error: {
      message: text(kind, message),
      type: 'invalid_request_error',
      param: PARAM[kind] ?? null,
      code: CODE[kind] ?? null,
    },
  }
}

function text(kind: RefusalKind, message: string): string {
  if (kind === 'unknown_model') return `The requested model '${message}' does not exist.`
  return kind === 'unknown_response' ? `Previous response with id '${message}' not found.` : message
}
