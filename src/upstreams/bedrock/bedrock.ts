import { BEDROCK_TIER_HEADER } from '../tier-headers.ts'
import { type ProtocolName } from '@sluice/wire/protocols'
import type { TransportError, UpstreamResponseHead, UpstreamResponseListener } from '@sluice/http1'
import { BEDROCK_KEY_FORMS, type BedrockKey, parseBedrockKey } from '../../domain/provider-keys.ts'
import type { Channel } from '../../domain/records/channel.ts'
import { applyEdits } from '@sluice/wire/json/json-edit'
import { RESPONSE_LIMITS, scanObject } from '@sluice/wire/json/json-scan'
import { parseRecord } from '@sluice/wire/json/record'
import type { UpstreamKey } from '../key-ring.ts'
import { type WireRequest, type Provider, ProviderRefusal, type ProviderTarget } from '../provider.ts'
import { BedrockResponses, ERROR_TYPE_HEADER } from './bedrock-responses.ts'
import { invokeBody } from './invoke-body.ts'
import { encodeSegment, signatureHeaders } from '../signature-v4.ts'

/** Name of the service in AWS signatures. It differs from the name in the host. */
const SERVICE = 'bedrock'
const JSON_TYPE = 'application/json'
const EVENT_STREAM = 'application/vnd.amazon.eventstream'

/** Response header with the number of tokens in the prompt. */
const INPUT_TOKENS_HEADER = 'x-amzn-bedrock-input-token-count'

/** Cache of parsed keys, so that each key is parsed only once. */
const keys = new WeakMap<UpstreamKey, BedrockKey>()

/** Amazon Bedrock: Claude through the operation `invoke`, other vendors' models through `converse`. */
export const bedrock: Provider = {
  readHeaders: [ERROR_TYPE_HEADER, INPUT_TOKENS_HEADER, BEDROCK_TIER_HEADER],
  adapt(request) {
    if (OPERATIONS[request.protocol]?.isInvoked !== true) return { body: request.body, dropped: [] }
    const adapted = invokeBody(request.body, request.headers, request.upstreamModel ?? '')
    return isCount(request) ? { ...adapted, body: countBody(adapted.body) } : adapted
  },
  request(request, target) {
    const { upstreamModel = '' } = request
    const model = isCount(request) ? upstreamModel.replace(PROFILE, '') : upstreamModel
    const path = `/model/${encodeSegment(model)}/${operationOf(request)}`
    const { body } = request
    if (!Buffer.isBuffer(body)) throw new ProviderRefusal(`Bedrock channels do not serve ${request.path}`)
    const headers = ['accept', request.stream === true ? EVENT_STREAM : JSON_TYPE]
    return { ...request, path, headers: [...headers, ...tierOf(request), ...credentials(path, body, target)] }
  },
  responses(request, listener, memory) {
    if (isCount(request)) return new BedrockResponses(new BedrockCount(listener), request.protocol)
    const tells = request.path === '/invoke' ? new EmbeddingUsage(listener) : listener
    return new BedrockResponses(tells, request.protocol, memory)
  },
}

interface Operation {
  readonly name: (request: WireRequest) => string
  /**
   * Whether the request body must be converted to the form of `invoke`, which differs from that of the
   * protocol.
   */
  readonly isInvoked: boolean
}

/** Bedrock's operation for each protocol; undefined if Bedrock has none. */
const OPERATIONS: Readonly<Record<ProtocolName, Operation | undefined>> = {
  converse: { name: ({ path }) => path.slice(1), isInvoked: false },
  messages: {
    name: ({ stream }) => (stream === true ? 'invoke-with-response-stream' : 'invoke'),
    isInvoked: true,
  },
  chat: undefined,
  responses: undefined,
  gemini: undefined,
  rerank: undefined,
}

/** Name and value of the header with the service tier; empty for requests that count tokens. */
function tierOf(request: WireRequest): readonly string[] {
  const at = isCount(request) ? -1 : request.headers.indexOf(BEDROCK_TIER_HEADER)
  return at === -1 ? [] : request.headers.slice(at, at + 2)
}

function isCount({ path }: WireRequest): boolean {
  return path.endsWith('/count_tokens')
}

function operationOf(request: WireRequest): string {
  if (isCount(request)) return 'count-tokens'
  const operation = OPERATIONS[request.protocol]
  if (!operation) throw new ProviderRefusal(`Bedrock channels do not serve ${request.path}`)
  return operation.name(request)
}

function credentials(path: string, body: Buffer, { channel, key, now }: ProviderTarget): readonly string[] {
  const parsed = keyOf(key)
  if ('bearer' in parsed) return ['authorization', `Bearer ${parsed.bearer}`]
  const url = new URL(channel.base_url)
  const basePath = url.pathname === '/' ? '' : url.pathname
  const headers = { 'content-type': JSON_TYPE }
  const signable = { method: 'POST', host: url.host, path: basePath + path, headers, body }
  return signatureHeaders(signable, parsed.aws, { service: SERVICE, region: regionOf(channel) }, now)
}

function keyOf(key: UpstreamKey): BedrockKey {
  let parsed = keys.get(key)
  if (parsed) return parsed
  parsed = parseBedrockKey(key.value)
  if (!parsed) throw new ProviderRefusal(`the key of a Bedrock channel has to be ${BEDROCK_KEY_FORMS}`, true)
  keys.set(key, parsed)
  return parsed
}

function regionOf({ region }: Channel): string {
  if (region === null) throw new Error('only channels of Bedrock have a region')
  return region
}

const OPENING = 0x7b

/**
 * Adds the number of tokens to the body of an embeddings response, in the form of Cohere's own API. Cohere's
 * models on Bedrock state this number only in a header.
 */
class EmbeddingUsage implements UpstreamResponseListener {
  readonly #listener: UpstreamResponseListener
  /**
   * Number of tokens to add to the beginning of the body; undefined if the response has none, or if it was
   * added already.
   */
  #tokens: number | undefined

  constructor(listener: UpstreamResponseListener) {
    this.#listener = listener
  }

  onHead(head: UpstreamResponseHead): void {
    this.#tokens = head.status === 200 ? countIn(head.headers[INPUT_TOKENS_HEADER]) : undefined
    this.#listener.onHead(head)
  }

  onData(chunk: Buffer): void {
    const tokens = this.#tokens
    this.#tokens = undefined
    if (tokens === undefined || chunk[0] !== OPENING) return this.#listener.onData(chunk)
    this.#listener.onData(Buffer.from(`{"meta":{"billed_units":{"input_tokens":${tokens}}},`))
    this.#listener.onData(chunk.subarray(1))
  }

  onEnd(): void {
    this.#listener.onEnd()
  }

  onError(error: TransportError): void {
    this.#listener.onError(error)
  }
}

function countIn(value = ''): number | undefined {
  return /^\d{1,9}$/.test(value) ? Number(value) : undefined
}

/**
 * What precedes the model in the id or ARN of an inference profile. Tokens are counted for models alone.
 * https://github.com/pydantic/pydantic-ai/pull/3367
 */
const PROFILE = /^(?:arn:.*\/)?[a-z-]+\.(?=anthropic\.)/

/** Maximum bytes of a response that are read; a larger response cannot be a token count. */
const MAX_BYTES = 64 * 1024

/**
 * Converts a request body of `invoke` to one of `count-tokens`. Bedrock requires `max_tokens` and compares it with the
 * budget of thinking, although it is not counted.
 */
function countBody(invoked: Buffer): Buffer {
  const scan = scanObject(invoked, RESPONSE_LIMITS)
  const { budget_tokens: budget } = (scan.value('thinking') ?? {}) as { readonly budget_tokens?: unknown }
  const replace = new Map<string, string>()
  if (!scan.has('max_tokens')) replace.set('max_tokens', String(typeof budget === 'number' ? budget + 1 : 1))
  const body = applyEdits(invoked, scan, { remove: [], replace }).toString('base64')
  return Buffer.from(JSON.stringify({ input: { invokeModel: { body } } }))
}

/** Converts responses of `count-tokens` to the form of the messages protocol. */
class BedrockCount implements UpstreamResponseListener {
  readonly #listener: UpstreamResponseListener
  #chunks: Buffer[] = []
  #length = 0

  constructor(listener: UpstreamResponseListener) {
    this.#listener = listener
  }

  // Bedrock refuses to count what it accepts in calls: some profiles, and prompts beyond 200,000 tokens. A 404 means that
  // the upstream cannot count.
  onHead(head: UpstreamResponseHead): void {
    this.#listener.onHead(head.status === 400 ? { ...head, status: 404 } : head)
  }

  onData(chunk: Buffer): void {
    if (this.#length < MAX_BYTES) this.#chunks.push(chunk)
    this.#length += chunk.length
  }

  onEnd(): void {
    const bytes = Buffer.concat(this.#chunks)
    const tokens = parseRecord(bytes.toString())?.['inputTokens']
    this.#listener.onData(
      typeof tokens === 'number' ? Buffer.from(JSON.stringify({ input_tokens: tokens })) : bytes,
    )
    this.#listener.onEnd()
  }

  onError(error: TransportError): void {
    this.#listener.onError(error)
  }
}
