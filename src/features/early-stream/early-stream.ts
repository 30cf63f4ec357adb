import { randomUUID } from 'node:crypto'
import { KEEP_ALIVE_FRAME } from '@sluice/wire/gemini'
import { asRecord, parseRecord, stringOrEmpty } from '@sluice/wire/json/record'
import { PING_FRAME } from '@sluice/wire/messages'
import { responsesCodec } from '@sluice/wire/responses'
import { DenseSet } from '../../domain/dense-set.ts'
import type { Endpoint } from '../../domain/endpoints.ts'
import type { RunningCall } from '../../call/running-call.ts'
import type { PlannedCall, RelayedStream } from '../../call/feature.ts'
import type { DialectFacts } from '../../call/dialects/dialect-facts.ts'
import type { ParsedRequest } from '../../call/request-stages.ts'

/** Milliseconds without a byte after which another keep-alive follows; proxies wait for 60 s and more. */
const KEEP_ALIVE_MS = 15_000

/** How a stream is kept open before it has begun, and between its events. */
interface StreamForm {
  /** Bytes that may stand before the first event, and between any two events. */
  readonly keepAlive: Buffer
  /** Whether the dialect has a keep-alive event, which is sent instead of these bytes once the stream has begun. */
  readonly hasOwnEvent?: true
  /** Writes the body of an error, which is JSON, as the last event of a stream without other events. */
  refusal(body: Buffer, call: RunningCall): Buffer
}

const COMMENTED_CHAT: StreamForm = {
  keepAlive: Buffer.from(': keep-alive\n\n'),
  refusal: (body) => Buffer.from(`data: ${oneLine(body)}\n\n`),
}

/** The form of streams at an endpoint. An endpoint that is not listed gets no head before its upstream answers. */
const FORMS: { readonly [Name in Endpoint]?: StreamForm } = {
  chat: COMMENTED_CHAT,
  completions: COMMENTED_CHAT,
  messages: {
    keepAlive: Buffer.from(PING_FRAME),
    refusal: (body) => Buffer.from(`event: error\ndata: ${oneLine(body)}\n\n`),
  },
  // Clients accept no other first event than `response.created`.
  responses: { keepAlive: COMMENTED_CHAT.keepAlive, hasOwnEvent: true, refusal: failedResponse },
  gemini: {
    keepAlive: Buffer.from(KEEP_ALIVE_FRAME),
    refusal: (body) => Buffer.from(`data: ${oneLine(body)}\r\n\r\n`),
  },
}

/** The stream of a Gemini client as one JSON array. */
const JSON_ARRAY: StreamForm = { keepAlive: Buffer.from(' '), refusal: (body) => body }

/** Whether streams of an endpoint may get their head before their upstream answers. */
export function mayBeginEarly(endpoint: Endpoint): boolean {
  return FORMS[endpoint] !== undefined
}

/** The calls whose clients may have to be kept waiting: `docs/operations.md: Silent streams`. */
export class EarlyStreams {
  readonly #calls = new DenseSet<EarlyStream>()
  // One timer for all calls, because a timer for each would cost more than the calls.
  readonly #timer = setInterval(() => this.#tick(performance.now()), 1_000).unref()

  /** Undefined if the call is not a stream that may get an early head. */
  begin({ dialect, request, settings }: PlannedCall): EarlyStream | undefined {
    const form = formOf(dialect, request)
    return form && new EarlyStream(form, settings.options.early_stream, this.#calls)
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #tick(nowMs: number): void {
    for (const early of this.#calls) early.tick(nowMs)
  }
}

/** Sends the head of one call's stream before an upstream has answered, and keep-alives. */
export class EarlyStream {
  /** Index in the set of calls; only the set changes it. */
  index = -1
  readonly #form: StreamForm
  /** Milliseconds after which the head is sent; 0 = never. */
  readonly #silenceMs: number
  readonly #calls: DenseSet<EarlyStream>
  #call: RunningCall | undefined
  /** When the client was last sent something, or the first request to an upstream was. */
  #silentSince: number | undefined
  #writes = 0

  constructor(form: StreamForm, silenceMs: number, calls: DenseSet<EarlyStream>) {
    this.#form = form
    this.#silenceMs = silenceMs
    this.#calls = calls
  }

  end(): void {
    this.#calls.delete(this)
  }

  /** Watches the call until `end`. */
  watch(call: RunningCall): void {
    this.#call = call
    if (this.#silenceMs > 0) this.#calls.add(this)
  }

  /** Notes that a request is being sent to an upstream. The silence counts from the first one. */
  dispatched(): void {
    this.#silentSince ??= performance.now()
  }

  /** Sends the head, or a keep-alive before the stream's first byte, if it is due. */
  tick(nowMs: number): void {
    const response = this.#call?.response
    if (this.#silentSince === undefined || !response || response.headersSent) return
    const waitMs = response.early ? KEEP_ALIVE_MS : this.#silenceMs
    if (nowMs - this.#silentSince >= waitMs) this.#send(nowMs)
  }

  /** Sends a keep-alive in a stream that has begun, if it is due. Returns whether this object sends the stream's keep-alives. */
  keepOpen(nowMs: number, stream: RelayedStream): boolean {
    const { writes, isBetweenEvents } = stream
    if (this.#silenceMs === 0) return false
    if (!this.#call?.response.headersSent) return true
    if (writes !== this.#writes) {
      this.#writes = writes
      this.#silentSince = nowMs
    } else if (isBetweenEvents && nowMs - (this.#silentSince ?? nowMs) >= KEEP_ALIVE_MS)
      this.#send(nowMs, this.#form.hasOwnEvent && writes > 0 ? stream.keepAlive() : undefined)
    return true
  }

  /** Sends the head at once. */
  beginNow(): void {
    if (!this.#call?.response.early) this.#send(performance.now())
  }

  #send(nowMs: number, own?: Buffer): void {
    this.#silentSince = nowMs
    const call = this.#call
    if (!call) return
    const contentType = call.plan.dialect.streamType ?? 'text/event-stream'
    call.response.keepAlive(own ?? this.#form.keepAlive, {
      headers: { ...call.headers(contentType, undefined), 'x-accel-buffering': 'no' },
      refusal: (body) => this.#form.refusal(body, call),
    })
  }
}

/** The form of a call's stream; undefined if the call has none, or may not get its head before the upstream's. */
function formOf({ endpoint, streamType }: DialectFacts, { stream }: ParsedRequest): StreamForm | undefined {
  if (!stream) return undefined
  return streamType === undefined ? FORMS[endpoint] : JSON_ARRAY
}

/** Removes line ends. In JSON they stand only between values, because strings contain them escaped. */
function oneLine(json: Buffer): string {
  return json
    .toString()
    .trim()
    .replace(/[\r\n]+/g, ' ')
}

/** A response that begins and fails, because clients accept no other first event than `response.created`. */
function failedResponse(body: Buffer, { plan }: RunningCall): Buffer {
  const error = asRecord(parseRecord(body.toString())?.['error'])
  const content = {
    type: stringOrEmpty(error?.['type']),
    code: stringOrEmpty(error?.['code']),
    message: stringOrEmpty(error?.['message']),
  }
  const identity = { created: Math.floor(Date.now() / 1000), id: randomUUID().replaceAll('-', '') }
  const encoder = responsesCodec.streamEncoder(identity, { includeUsage: false })
  const { name: model } = plan.requestedModel
  const begun = encoder.push([{ kind: 'start', id: '', model, usage: undefined }])
  return Buffer.from(begun + encoder.failureFrame({ ...content, hasOwnCode: content.code !== '' }))
}
