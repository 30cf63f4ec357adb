import { crc32 } from 'node:zlib'
import { asFields, asList, asNumber, asString, type Fields } from './fields.ts'
import { CacheDiagnostics } from './cache-diagnostics.ts'
import { replyWithFaults } from './faults.ts'
import { type CallCaches, messagesReply, useCacheBreakpoints } from './messages.ts'
import { messagesPrompt } from './messages-request.ts'
import { generateOutput, type ModelOutput, type StopCause } from './model-output.ts'
import type { PromptCache } from './prompt-cache.ts'
import { type Refusal, REFUSAL_STATUS } from './refusal.ts'
import { BEDROCK_HEADER, bedrockTier, requestedCacheWrites } from './service-tier.ts'
import { estimateTokens } from './tokens.ts'
import {
  bearerToken,
  type Call,
  type Frame,
  type Reply,
  type ReplyTimeAndIds,
  type Upstream,
} from './upstream.ts'

const OPERATION = /^\/model\/([^/]+)\/(invoke|invoke-with-response-stream|converse|converse-stream)$/

/** Creates a simulated Bedrock runtime: `invoke` for Claude, `converse` for any model. */
export function bedrockUpstream(models: readonly string[], cache: PromptCache): Upstream {
  const diagnostics = new CacheDiagnostics()
  return {
    bodyIfServed,
    models,
    keyOf: bearerToken,
    reply: (body, model, stamp, call) =>
      operationOf(call).startsWith('converse')
        ? asEventStream(
            replyWithFaults('converse', body, (asked) => converseReply(asked, model, stamp, call, cache)),
          )
        : invokeReply(body, model, stamp, call, { cache, diagnostics, account: call.account }),
    refuse: ({ kind, message }: Refusal) => ({ message, status: REFUSAL_STATUS[kind] }),
  }
}

function operationOf({ path }: Call): string {
  return OPERATION.exec(path)?.[2] ?? ''
}

function bodyIfServed(call: Call): Fields | undefined {
  const [, model = ''] = OPERATION.exec(call.path) ?? []
  if (call.method !== 'POST' || model === '') return undefined
  return { ...call.body, model: decodeURIComponent(model), stream: operationOf(call).endsWith('stream') }
}

function invokeReply(
  body: Fields,
  model: string,
  stamp: ReplyTimeAndIds,
  { headers }: Call,
  caches: CallCaches,
): Reply {
  const tier = bedrockTier(body, headers)
  const stated = { ...(tier !== undefined && { [BEDROCK_HEADER]: tier }) }
  const reply = messagesReply(body, model, stamp, caches)
  if (reply.kind !== 'stream') return { ...reply, headers: stated }
  return { ...EVENT_STREAM, headers: stated, frames: reply.frames.map(invokedFrame) }
}

const EVENT_STREAM = {
  kind: 'stream',
  contentType: 'application/vnd.amazon.eventstream',
  encoding: 'latin1',
} as const

/** Converts an event of a messages stream to the event format of Bedrock. */
function invokedFrame({ text, tokens }: Frame): Frame {
  const data = text.slice(text.indexOf('data: ') + 'data: '.length).trim()
  return { text: message('chunk', { bytes: Buffer.from(data).toString('base64') }), tokens }
}

const EVENT = /^(?:event: (.*)\n)?data: (.*)\n\n$/

/** Converts the events of a stream to the event format of Bedrock. */
function asEventStream(reply: Reply): Reply {
  if (reply.kind !== 'stream') return reply
  const frames = reply.frames.map(({ text, tokens }) => {
    const [, name, data = '{}'] = EVENT.exec(text) ?? []
    return { text: message(name, JSON.parse(data)), tokens }
  })
  return { ...reply, ...EVENT_STREAM, frames }
}

const STOP_REASON: Readonly<Record<StopCause, string>> = {
  done: 'end_turn',
  stop_text: 'stop_sequence',
  length: 'max_tokens',
  tools: 'tool_use',
}

function converseReply(
  body: Fields,
  model: string,
  stamp: ReplyTimeAndIds,
  { headers, account }: Call,
  cache: PromptCache,
): Reply {
  const request = asMessages(body)
  const { prompt, cached } = messagesPrompt(request, model)
  const { read, writes: marked } = useCacheBreakpoints({ cache, account }, request, model, cached)
  const output = generateOutput(prompt)
  const tier = bedrockTier(body, headers)
  const input = estimateTokens(prompt.transcript.length)
  const asked = requestedCacheWrites(body, input - read - (marked['5m'] ?? 0) - (marked['1h'] ?? 0))
  const writes = {
    '5m': asked['5m'] + (marked['5m'] ?? 0),
    '1h': asked['1h'] + (marked['1h'] ?? 0),
  }
  const written = writes['5m'] + writes['1h']
  const usage = {
    inputTokens: input - read - written,
    outputTokens: output.tokens,
    totalTokens: input + output.tokens,
    cacheReadInputTokens: read,
    cacheWriteInputTokens: written,
    ...(writes['1h'] > 0 && { cacheDetails: [{ ttl: '1h', inputTokens: writes['1h'] }] }),
  }
  const facts = {
    usage,
    metrics: { latencyMs: 1 },
    ...(tier !== undefined && { serviceTier: { type: tier } }),
  }
  const stopReason = STOP_REASON[output.stopCause]
  const { text, calls } = output
  const used = calls.map(({ tool: { name }, input: pieces }) => ({ id: stamp.id('tooluse_'), name, pieces }))
  if (body.stream === true) return { kind: 'stream', frames: converseFrames(output, used, stopReason, facts) }
  const content = [
    ...(text.length > 0 ? [{ text: text.join('') }] : []),
    ...used.map(({ id, name, pieces }) => ({
      toolUse: { toolUseId: id, name, input: argumentsIn(pieces.join('')) },
    })),
  ]
  const whole = { output: { message: { role: 'assistant', content } }, stopReason, ...facts }
  return { kind: 'whole', body: whole, tokens: output.tokens }
}

interface UsedTool {
  readonly id: string
  readonly name: string
  readonly pieces: readonly string[]
}

function converseFrames(
  { text }: ModelOutput,
  used: readonly UsedTool[],
  stopReason: string,
  facts: object,
): Frame[] {
  const frame = (type: string, data: object, tokens = 0): Frame => ({
    text: `event: ${type}\ndata: ${JSON.stringify(data)}\n\n`,
    tokens,
  })
  const first = text.length > 0 ? 1 : 0
  const delta = (contentBlockIndex: number, change: object): Frame =>
    frame('contentBlockDelta', { contentBlockIndex, delta: change }, 1)
  return [
    frame('messageStart', { role: 'assistant' }),
    ...text.map((piece) => delta(0, { text: piece })),
    ...(first === 1 ? [frame('contentBlockStop', { contentBlockIndex: 0 })] : []),
    ...used.flatMap(({ id, name, pieces }, at) => [
      frame('contentBlockStart', {
        contentBlockIndex: at + first,
        start: { toolUse: { toolUseId: id, name } },
      }),
      ...pieces.map((input) => delta(at + first, { toolUse: { input } })),
      frame('contentBlockStop', { contentBlockIndex: at + first }),
    ]),
    frame('messageStop', { stopReason }),
    frame('metadata', facts),
  ]
}

/** Parses a call's arguments; if they are cut off, returns an empty object. */
function argumentsIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}

/** Converts a Converse request to a messages request, without the fields that the simulated model does not read. */
function asMessages(body: Fields): Fields {
  const { maxTokens, stopSequences } = asFields(body.inferenceConfig)
  const tools = withMarks(asList(asFields(body.toolConfig).tools), asTool)
  return {
    max_tokens: asNumber(maxTokens) ?? 4096,
    ...(Array.isArray(stopSequences) && { stop_sequences: stopSequences }),
    system: withMarks(asList(body.system), textBlock),
    messages: asList(body.messages).map((given) => {
      const { role, content } = asFields(given)
      return { role, content: withMarks(asList(content), asBlock) }
    }),
    tools,
    tool_choice: asToolChoice(asFields(asFields(body.toolConfig).toolChoice)),
  }
}

function asToolChoice({ any, tool }: Fields): Fields {
  if (tool !== undefined) return { type: 'tool', name: asFields(tool).name }
  return { type: any === undefined ? 'auto' : 'any' }
}

/** Converts the elements of a list. A `cachePoint` is not converted, but marks the block before it. */
function withMarks(members: readonly unknown[], convert: (member: Fields) => Fields[]): Fields[] {
  const blocks: Fields[] = []
  for (const member of members.map(asFields)) {
    const last = blocks.at(-1)
    if (member.cachePoint === undefined) blocks.push(...convert(member))
    else if (last)
      blocks.splice(-1, 1, { ...last, cache_control: { ttl: asFields(member.cachePoint).ttl ?? '5m' } })
  }
  return blocks
}

function asTool({ toolSpec }: Fields): Fields[] {
  const { name, description, inputSchema } = asFields(toolSpec)
  return [{ name, description, input_schema: asFields(asFields(inputSchema).json) }]
}

function textBlock({ text }: Fields): Fields[] {
  return typeof text === 'string' ? [{ type: 'text', text }] : []
}

function asBlock(block: Fields): Fields[] {
  const { toolUseId: usedId, name, input } = asFields(block.toolUse)
  if (usedId !== undefined) return [{ type: 'tool_use', id: usedId, name, input }]
  const { toolUseId: id, content } = asFields(block.toolResult)
  if (id === undefined) return textBlock(block)
  const texts = asList(content).map((one) => {
    const { text, json } = asFields(one)
    return asString(text) || JSON.stringify(json ?? '')
  })
  return [{ type: 'tool_result', tool_use_id: id, content: texts.join('\n') }]
}

/**
 * Renders an event or an exception in the binary event format of AWS, as a text with one character for each byte.
 * `type`: undefined for an event without a name.
 */
function message(type: string | undefined, payload: object): string {
  const kind = type?.endsWith('Exception') === true ? 'exception' : 'event'
  const names = {
    ...(type !== undefined && { [`:${kind}-type`]: type }),
    ':message-type': kind,
    ':content-type': 'application/json',
  }
  const head = Buffer.concat(
    Object.entries(names).map(([name, value]) =>
      Buffer.concat([
        Buffer.of(name.length),
        Buffer.from(name),
        Buffer.of(7, value.length >> 8, value.length & 255),
        Buffer.from(value),
      ]),
    ),
  )
  const body = Buffer.from(JSON.stringify(payload))
  const lengths = Buffer.concat([uint32(16 + head.length + body.length), uint32(head.length)])
  const unchecked = Buffer.concat([lengths, uint32(crc32(lengths)), head, body])
  return Buffer.concat([unchecked, uint32(crc32(unchecked))]).toString('latin1')
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
