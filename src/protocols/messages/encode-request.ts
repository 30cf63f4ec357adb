import { GatewayError } from '../../errors.ts'
import type { Dropped, UpstreamModel } from '../codec.ts'
import type { Conversation, Tool, WebSearch } from '../conversation.ts'
import { asRecord } from '../record.ts'
import { writeCache } from './cache-mark.ts'
import { drop } from './dropped.ts'
import { encodePart } from './encode-part.ts'
import { isBlank, spokenTurns } from './spoken-turns.ts'
import { encodeSampling } from './thinking.ts'

/** The version of the tool that searches the web; `docs/api.md: Chat completions`, translations. */
const WEB_SEARCH = { type: 'web_search_20250305', name: 'web_search' } as const

/**
 * The conversation as a messages request. The order of the fields is always this one, so that equal conversations are
 * equal bytes and the upstream's cache finds them. Throws `invalid_request` where this wire has no way to say something
 * that must not be left out.
 */
export function encodeRequest(
  conversation: Conversation,
  { name: upstreamModel, capabilities }: UpstreamModel,
  dropped: Dropped,
): Buffer {
  const turns = spokenTurns(conversation.turns, dropped)
  const { max_tokens, ...sampling } = encodeSampling(conversation, capabilities, turns, dropped)
  const system = conversation.system.filter((part) => !isBlank(part))
  const messages = turns.map(
    ({ role, parts }) => `{"role":"${role}","content":[${parts.map(encodePart).join(',')}]}`,
  )
  const fields: readonly (readonly [name: string, text: string | undefined])[] = [
    ['model', JSON.stringify(upstreamModel)],
    ['max_tokens', String(max_tokens)],
    ['system', system.length > 0 ? `[${system.map(encodePart).join(',')}]` : undefined],
    ['messages', `[${messages.join(',')}]`],
    ...Object.entries({
      ...encodeTools(conversation, dropped),
      ...sampling,
      stop_sequences: encodeStop(conversation.stop, dropped),
      stream: conversation.stream || undefined,
    }).map(([name, value]) => [name, JSON.stringify(value) as string | undefined] as const),
  ]
  const body = fields.filter(([, text]) => text !== undefined).map(([name, text]) => `"${name}":${text}`)
  return Buffer.from(`{${body.join(',')}}`)
}

function encodeTools(conversation: Conversation, dropped: Dropped): object {
  const { webSearch, toolChoice, parallelTools } = conversation
  const tools = [...conversation.tools.map(encodeTool), ...(webSearch ? [encodeSearch(webSearch)] : [])]
  if (tools.length > 0) return { tools, tool_choice: encodeChoice(conversation) }
  // Upstreams refuse a choice where there is nothing to choose from.
  if (toolChoice?.kind === 'any' || toolChoice?.kind === 'tool') drop(dropped, 'tool_choice')
  if (parallelTools !== undefined) drop(dropped, 'parallel_tool_calls')
  return {}
}

function encodeTool({ name, description, schema, strict, cache }: Tool, index: number): object {
  const given = asRecord(schema ?? {})
  if (!given)
    throw new GatewayError('invalid_request', `Invalid schema of the tool at ${index}: expected an object.`)
  return {
    name,
    description,
    input_schema: 'type' in given ? given : { type: 'object', properties: {}, ...given },
    strict,
    ...writeCache(cache),
  }
}

function encodeSearch({ maxUses, location }: WebSearch): object {
  return {
    ...WEB_SEARCH,
    max_uses: maxUses,
    user_location: location && { type: 'approximate', ...location },
  }
}

/** Undefined where the wire's own default is meant. A choice of none leaves nothing to be called side by side. */
function encodeChoice({ toolChoice, parallelTools }: Conversation): object | undefined {
  if (!toolChoice && parallelTools === undefined) return undefined
  const kind = toolChoice?.kind ?? 'auto'
  return {
    type: kind,
    ...(toolChoice?.kind === 'tool' && { name: toolChoice.name }),
    ...(parallelTools === false && kind !== 'none' && { disable_parallel_tool_use: true }),
  }
}

/** Upstreams refuse sequences without visible characters. */
function encodeStop(stop: readonly string[], dropped: Dropped): readonly string[] | undefined {
  const visible = stop.filter((sequence) => sequence.trim() !== '')
  if (visible.length < stop.length) drop(dropped, 'stop')
  return visible.length > 0 ? visible : undefined
}
