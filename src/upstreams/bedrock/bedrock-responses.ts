import { TransportError, type UpstreamResponseHead, type UpstreamResponseListener } from '@sluice/http1'
import type { ProtocolName } from '@sluice/wire/protocols'
import { applyEdits } from '@sluice/wire/json/json-edit'
import { RESPONSE_LIMITS, scanObject } from '@sluice/wire/json/json-scan'
import { parseRecord } from '@sluice/wire/json/record'
import type { EventMemory } from '@sluice/wire/sse/frame-splitter'
import { EventStreamReader, MalformedEventStream, type StreamMessage } from './event-stream.ts'

/** Response header that names the type of an error. */
export const ERROR_TYPE_HEADER = 'x-amzn-errortype'

const EVENT_STREAM = /^application\/vnd\.amazon\.eventstream\b/i

/** Maximum bytes of an error response that are read. */
const MAX_ERROR_BYTES = 64 * 1024

/**
 * Converts Bedrock's binary event streams to server-sent events, and its errors to those of the messages
 * protocol. Responses that are not streams pass unchanged.
 */
export class BedrockResponses implements UpstreamResponseListener {
  readonly #listener: UpstreamResponseListener
  readonly #protocol: ProtocolName
  readonly #memory: EventMemory | undefined
  #reader: EventStreamReader | undefined
  #isOver = false
  #errorName: string | undefined
  #errorBytes: Buffer[] = []
  #errorLength = 0

  constructor(listener: UpstreamResponseListener, protocol: ProtocolName, memory?: EventMemory) {
    this.#listener = listener
    this.#protocol = protocol
    this.#memory = memory
  }

  onHead(head: UpstreamResponseHead): void {
    if (head.status >= 400) this.#errorName = head.headers[ERROR_TYPE_HEADER]
    if (head.status !== 200 || !EVENT_STREAM.test(head.contentType)) return this.#listener.onHead(head)
    this.#reader = new EventStreamReader(this.#memory)
    this.#listener.onHead({ ...head, contentType: 'text/event-stream' })
  }

  onData(chunk: Buffer): void {
    if (this.#errorName !== undefined) return this.#keepError(chunk)
    if (!this.#reader) return this.#listener.onData(chunk)
    if (this.#isOver) return
    const frames: Buffer[] = []
    let malformed: string | undefined
    try {
      for (const message of this.#reader.push(chunk)) frames.push(sseFrame(message, this.#protocol))
    } catch (error) {
      if (!(error instanceof MalformedEventStream)) throw error
      malformed = error.message
    }
    // What arrived before the error counts, as if it had arrived in an earlier chunk: it may state the usage.
    const bytes = Buffer.concat(frames)
    if (bytes.length > 0) this.#listener.onData(bytes)
    if (malformed !== undefined) this.#fail(malformed)
  }

  onEnd(): void {
    if (this.#isOver) return
    if (this.#errorName !== undefined)
      this.#listener.onData(errorBody(this.#errorName, Buffer.concat(this.#errorBytes)))
    if (this.#reader?.isMidMessage === true) this.#fail('the event stream ended inside a message')
    else this.#listener.onEnd()
  }

  onError(error: TransportError): void {
    if (!this.#isOver) this.#listener.onError(error)
  }

  #keepError(chunk: Buffer): void {
    if (this.#errorLength < MAX_ERROR_BYTES) this.#errorBytes.push(chunk)
    this.#errorLength += chunk.length
  }

  #fail(message: string): void {
    this.#isOver = true
    this.#listener.onError(new TransportError('malformed event stream', false, message))
  }
}

/**
 * JSON member with Bedrock's statistics in the last event. It is removed, because the messages protocol does
 * not have it.
 */
const METRICS = 'amazon-bedrock-invocationMetrics'
const NOTHING = Buffer.alloc(0)

/** Converts a message of Bedrock's event stream to a server-sent event of the client's protocol. */
function sseFrame({ headers, payload }: StreamMessage, protocol: ProtocolName): Buffer {
  const kind = headers.get(':message-type')
  if (kind === 'exception' || kind === 'error') return errorFrame(headers, payload)
  return FRAMES[protocol]?.(headers.get(':event-type') ?? '', payload) ?? NOTHING
}

/**
 * Functions that convert an event of Bedrock's stream, by protocol; undefined if Bedrock does not stream that
 * protocol.
 */
const FRAMES: Readonly<Record<ProtocolName, ((event: string, payload: Buffer) => Buffer) | undefined>> = {
  converse: frameOf,
  messages: (event, payload) => (event === 'chunk' ? chunkFrame(payload) : NOTHING),
  chat: undefined,
  responses: undefined,
  gemini: undefined,
  rerank: undefined,
}

// A chunk has the form `{"bytes": "<base64 of an event>", "p": "padding"}`.
function chunkFrame(payload: Buffer): Buffer {
  const encoded = parseRecord(payload.toString())?.['bytes']
  if (typeof encoded !== 'string') throw new MalformedEventStream('a chunk has no bytes')
  const event = Buffer.from(encoded, 'base64')
  const scan = scanned(event)
  const type = scan.value('type')
  if (typeof type !== 'string') throw new MalformedEventStream('an event has no type')
  return frameOf(type, applyEdits(event, scan, { remove: [METRICS], replace: new Map() }))
}

function scanned(event: Buffer): ReturnType<typeof scanObject> {
  try {
    return scanObject(event, RESPONSE_LIMITS)
  } catch {
    throw new MalformedEventStream('an event is not a JSON object')
  }
}

function errorFrame(headers: ReadonlyMap<string, string>, payload: Buffer): Buffer {
  const name = headers.get(':exception-type') ?? headers.get(':error-code') ?? ''
  return frameOf('error', errorBody(name, payload, headers.get(':error-message')))
}

const LF = 0x0a
const CR = 0x0d

function frameOf(event: string, data: Buffer): Buffer {
  const name = event.replaceAll(/[^\w.-]/g, '')
  return Buffer.concat([Buffer.from(`event: ${name}\ndata: `), inDataLines(data), Buffer.from('\n\n')])
}

// Each line of JSON that is written in several lines becomes a `data` line; otherwise the event would end early.
function inDataLines(data: Buffer): Buffer {
  if (!data.includes(LF) && !data.includes(CR)) return data
  return Buffer.from(data.toString().replaceAll(/\r\n|\n|\r/g, '\ndata: '))
}

/** Error types of the messages protocol, by the name of Bedrock's exception in lower case. */
const ERROR_TYPES: ReadonlyMap<string, string> = new Map([
  ['throttlingexception', 'rate_limit_error'],
  ['modelnotreadyexception', 'rate_limit_error'],
  ['servicequotaexceededexception', 'rate_limit_error'],
  ['serviceunavailableexception', 'overloaded_error'],
  ['validationexception', 'invalid_request_error'],
  ['resourcenotfoundexception', 'not_found_error'],
  ['accessdeniedexception', 'permission_error'],
  ['unrecognizedclientexception', 'authentication_error'],
  ['invalidsignatureexception', 'authentication_error'],
  ['expiredtokenexception', 'authentication_error'],
])

/**
 * Converts a Bedrock exception to an error of the messages protocol. `name` may be followed by a colon and a
 * URL.
 */
function errorBody(name: string, payload: Buffer, told?: string): Buffer {
  const body = parseRecord(payload.toString())
  const [code = ''] = name.split(':')
  const words = [body?.['message'], body?.['Message'], body?.['originalMessage'], told]
  const message = words.find((text) => typeof text === 'string' && text !== '') ?? `Bedrock failed: ${code}`
  const error = { type: ERROR_TYPES.get(code.toLowerCase()) ?? 'api_error', message, code }
  return Buffer.from(JSON.stringify({ type: 'error', error }))
}
