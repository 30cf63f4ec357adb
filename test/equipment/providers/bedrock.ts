import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { AwsV4Signer } from 'aws4fetch'
import { embedAnswer, embedError, isEmbedder } from './bedrock-embed.ts'
import { converseError } from './converse-check.ts'
import { type Double, type DoubleAnswer, type ReceivedByDouble, startDouble } from './double.ts'

/** The account that the double knows. */
export const ACCOUNT = {
  id: 'AKIAIOSFODNN7EXAMPLE',
  secret: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  session: 'FwoGZXIvYXdzEXAMPLE=',
}
/** The Bedrock API key that the double knows. */
export const API_KEY = 'ABSKQmVkcm9ja0FQSUtleUV4YW1wbGU='
export const REGION = 'eu-central-1'

/** Members of a request that `invoke` accepts: any other is a 400. */
const TAKEN = new Set([
  'anthropic_version',
  'anthropic_beta',
  'max_tokens',
  'messages',
  'output_config',
  'system',
  'temperature',
  'thinking',
  'tools',
  'tool_choice',
  'top_p',
  'top_k',
  'stop_sequences',
])
/** Members that it accepts with a beta feature. */
const OF_BETAS: Readonly<Record<string, string>> = {
  context_management: 'context-management-2025-06-27',
  safeguards: 'dangerous-tool-use-2026-09-03',
}
/**
 * Versions in the body: the service's own, and that of the header, which Anthropic's client moves into the
 * body.
 */
const VERSION = /^(?:bedrock-2023-05-31|\d{4}-\d\d-\d\d)$/
const MAX_SKEW_MS = 5 * 60_000

/** The double's response to a verified request. */
export interface BedrockAnswer {
  /** The body of `invoke` or `converse`, or the events of their streams: those of `converse` by type. */
  readonly whole?: object
  readonly events?: readonly object[]
  /** The exception that ends the stream. */
  readonly exception?: { readonly name: string; readonly message: string }
  /** The number of bytes that are missing at the end of the stream. */
  readonly cutBytes?: number
  /** Whether the connection is reset after the events. */
  readonly resets?: boolean
  /** Status and text of an error response. */
  readonly error?: { readonly status: number; readonly name: string; readonly message: string }
  /** Milliseconds by which the double's clock is ahead. */
  readonly clockAheadMs?: number
}

/** Starts a double of Bedrock's runtime. `answerFor` receives the model's id and the operation. */
export function startBedrock(
  answerFor: (model: string, operation: string) => BedrockAnswer,
): Promise<Double> {
  return startDouble(async (request) => {
    const [, root, model = '', operation = ''] = request.path.split('/')
    const answer = answerFor(decodeURIComponent(model), operation)
    const { whole, events, exception, cutBytes = 0, error, clockAheadMs = 0 } = answer
    const refusal =
      root === 'model' && model !== ''
        ? await refusalOf(request, decodeURIComponent(model), operation, Date.now() + clockAheadMs)
        : refused(404, 'UnknownOperationException', '')
    if (refusal) return refusal
    if (error) return refused(error.status, error.name, error.message)
    const embedder = decodeURIComponent(model)
    if (isEmbedder(embedder)) return embedAnswer(embedder, JSON.parse(request.body.toString()))
    if (operation === 'count-tokens') return { body: JSON.stringify({ inputTokens: 14 }) }
    if (operation === 'invoke' || operation === 'converse') return { body: JSON.stringify(whole) }
    const frame = operation === 'converse-stream' ? conversePiece : eventMessage
    const messages = (events ?? []).map((event) => frame(event))
    if (exception) messages.push(exceptionMessage(exception.name, exception.message))
    const bytes = Buffer.concat(messages)
    return {
      headers: { 'content-type': 'application/vnd.amazon.eventstream' },
      body: bytes.subarray(0, bytes.length - cutBytes),
      ...(answer.resets && { resets: true }),
    }
  })
}

async function refusalOf(
  request: ReceivedByDouble,
  model: string,
  operation: string,
  nowMs: number,
): Promise<DoubleAnswer | undefined> {
  const unsigned = await authenticationError(request, nowMs)
  if (unsigned !== undefined) return refused(403, 'InvalidSignatureException', unsigned)
  const sent = JSON.parse(request.body.toString())
  if (operation.startsWith('converse')) {
    const wrong = converseError(model, sent)
    return wrong === undefined ? undefined : refused(400, 'ValidationException', wrong)
  }
  if (isEmbedder(model)) {
    const wrong = embedError(model, sent)
    return wrong === undefined ? undefined : refused(400, 'ValidationException', wrong)
  }
  const counted = sent.input?.invokeModel?.body
  if (operation === 'count-tokens' && typeof counted !== 'string')
    return refused(400, 'ValidationException', 'input: Field required')
  const body = counted === undefined ? sent : JSON.parse(Buffer.from(counted, 'base64').toString())
  const extra = extraMember(model, body)
  if (extra !== undefined)
    return refused(400, 'ValidationException', `${extra}: Extra inputs are not permitted`)
  if (body.anthropic_beta?.some((name: string) => name.startsWith('unknown')))
    return refused(400, 'ValidationException', 'invalid beta flag')
  if (!VERSION.test(body.anthropic_version ?? ''))
    return refused(400, 'ValidationException', 'anthropic_version: Field required')
  return undefined
}

/** The part of a messages request that is verified. */
interface InvokedBody {
  readonly tools?: readonly Readonly<Record<string, unknown>>[]
  readonly tool_choice?: unknown
  readonly anthropic_beta?: readonly string[]
}

/** The member for which a messages request is refused; undefined if there is none. */
function extraMember(model: string, body: InvokedBody): string | undefined {
  const tools = body.tools ?? []
  const mayDefer = body.anthropic_beta?.includes('tool-search-tool-2025-10-19') === true
  if (tools.some(({ type }) => /^(?:web_search|web_fetch|code_execution)/.test(String(type))))
    return 'tools.type'
  if (tools.some((tool) => 'eager_input_streaming' in tool)) return 'eager_input_streaming'
  if (tools.some((tool) => 'defer_loading' in tool) && !mayDefer) return 'defer_loading'
  if (/claude-(?:3|sonnet-4-2)/.test(model) && JSON.stringify(body).includes('"ttl"'))
    return 'cache_control.ttl'
  if (body.tool_choice !== undefined && tools.length === 0) return 'tool_choice'
  const isTaken = (name: string): boolean =>
    TAKEN.has(name) || body.anthropic_beta?.includes(OF_BETAS[name] ?? '') === true
  return Object.keys(body).find((name) => !isTaken(name))
}

async function authenticationError(
  { method, path, headers, body }: ReceivedByDouble,
  nowMs: number,
): Promise<string | undefined> {
  const given = headers.authorization ?? ''
  if (given.startsWith('Bearer ')) return given === `Bearer ${API_KEY}` ? undefined : 'unknown API key'
  const datetime = String(headers['x-amz-date'])
  const sentAt = Date.parse(datetime.replace(/^(\d{4})(\d\d)(\d\dT\d\d)(\d\d)(\d\dZ)$/, '$1-$2-$3:$4:$5'))
  if (!(Math.abs(nowMs - sentAt) < MAX_SKEW_MS)) return `Signature expired: ${datetime} is now earlier`
  const session = headers['x-amz-security-token']
  const signed = /SignedHeaders=([^,]+)/.exec(given)?.[1]?.split(';') ?? []
  const needed = ['host', 'x-amz-date', ...(session === undefined ? [] : ['x-amz-security-token'])]
  if (!needed.every((name) => signed.includes(name))) return 'a header that must be signed is not'
  const told = headers['x-amz-content-sha256']
  if (told !== undefined && told !== hash('sha256', body)) return 'the checksum of the body does not match'
  const signer = new AwsV4Signer({
    method,
    url: `http://${headers.host}${path}`,
    headers: Object.fromEntries(
      signed.filter((name) => !needed.includes(name)).map((name) => [name, String(headers[name])]),
    ),
    body,
    accessKeyId: ACCOUNT.id,
    secretAccessKey: ACCOUNT.secret,
    ...(session !== undefined && { sessionToken: String(session) }),
    service: 'bedrock',
    region: REGION,
    datetime,
    allHeaders: true,
  })
  const { headers: expected } = await signer.sign()
  if (session !== undefined && session !== ACCOUNT.session) return 'The security token is invalid'
  return expected.get('authorization') === given ? undefined : 'The request signature does not match'
}

function refused(status: number, name: string, message: string): DoubleAnswer {
  return {
    status,
    headers: { 'x-amzn-errortype': `${name}:http://internal.amazon.com/coral/com.amazon.bedrock/` },
    body: JSON.stringify(status === 403 ? { Message: message } : { message }),
  }
}

/** One event of a stream in Bedrock's framing. */
export function eventMessage(event: object): Buffer {
  const bytes = Buffer.from(JSON.stringify(event)).toString('base64')
  return message({ ':event-type': 'chunk', ':message-type': 'event' }, { bytes, p: 'abcdef' })
}

/** One event of `converse-stream`, as an object of one member: the event's type and its content. */
function conversePiece(event: object): Buffer {
  const [type, payload] = Object.entries(event)[0] as [string, object]
  return message({ ':event-type': type, ':message-type': 'event' }, { ...payload, p: 'abcdefgh' })
}

function exceptionMessage(name: string, text: string): Buffer {
  return message({ ':exception-type': name, ':message-type': 'exception' }, { message: text })
}

function message(headers: Readonly<Record<string, string>>, payload: object): Buffer {
  const fields = Object.entries({ ...headers, ':content-type': 'application/json' }).map(([name, value]) =>
    Buffer.concat([
      Buffer.of(name.length),
      Buffer.from(name),
      Buffer.of(7, value.length >> 8, value.length & 255),
      Buffer.from(value),
    ]),
  )
  const head = Buffer.concat(fields)
  const body = Buffer.from(JSON.stringify(payload))
  const lengths = Buffer.concat([uint32(16 + head.length + body.length), uint32(head.length)])
  const unchecked = Buffer.concat([lengths, uint32(crc32(lengths)), head, body])
  return Buffer.concat([unchecked, uint32(crc32(unchecked))])
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
