import { randomUUID } from 'node:crypto'
import { KEEP_ALIVE_FRAME } from '@sluice/wire/gemini'
import { asRecord, parseRecord, stringOrEmpty } from '@sluice/wire/json/record'
import { PING_FRAME } from '@sluice/wire/messages'
import { responsesCodec } from '@sluice/wire/responses'
import { DenseSet } from '../domain/dense-set.ts'
import type { Endpoint } from '../domain/endpoints.ts'
import type { Call } from './call.ts'
import { UpstreamRefusal } from './failure.ts'
import { TOO_LONG_CODE } from './refused-requests.ts'

/** Milliseconds without a byte after which another keep-alive follows; proxies wait for 60 s and more. */
const KEEP_ALIVE_MS = 15_000

/** How a stream is kept open before it has begun, and between its events. */
interface StreamForm {
  /** Bytes that may stand between any two events, and before the first one. */
  readonly keepAlive: Buffer
  /** Writes the body of an error, which is JSON, as the last event of a stream without other events. */
  refusal(body: Buffer, call: Call): Buffer
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
  // Every event of this protocol has a number, so that an added one would change those that follow.
  responses: { keepAlive: COMMENTED_CHAT.keepAlive, refusal: failedResponse },
  gemini: {
    keepAlive: Buffer.from(KEEP_ALIVE_FRAME),
    refusal: (body) => Buffer.from(`data: ${oneLine(body)}\r\n\r\n`),
  },
}

/** The stream of a Gemini client as one JSON array. */
const JSON_ARRAY: StreamForm = { keepAlive: Buffer.from(' '), refusal: (body) => body }

/** The calls whose clients may have to be kept waiting: `docs/operations.md: Silent streams`. */
export class EarlyStreams {
  readonly #calls = new DenseSet<EarlyStream>()

  /** Watches a call until the result is disposed of. Undefined if the call gets no early head. */
  begin(call: Call): EarlyStream | undefined {
    const { early_stream: silenceMs } = call.plan.settings.options
    const form = silenceMs === 0 ? undefined : formOf(call)
    if (!form) return undefined
    const early = new EarlyStream(call, form, silenceMs, this.#calls)
    this.#calls.add(early)
    return early
  }

  /** Must be called once a second; `nowMs` is in milliseconds of `performance.now()`. */
  tick(nowMs: number): void {
    for (const early of this.#calls) early.tick(nowMs)
  }
}

/** Sends the head of one call's stream before an upstream has answered, and keep-alives. */
export class EarlyStream implements Disposable {
  /** Index in the set of calls; only the set changes it. */
  index = -1
  readonly #call: Call
  readonly #form: StreamForm
  readonly #silenceMs: number
  readonly #calls: DenseSet<EarlyStream>
  /** When the client was last sent something, or the first request to an upstream was. */
  #silentSince: number | undefined
  #writes = 0

  constructor(call: Call, form: StreamForm, silenceMs: number, calls: DenseSet<EarlyStream>) {
    this.#call = call
    this.#form = form
    this.#silenceMs = silenceMs
    this.#calls = calls
  }

  [Symbol.dispose](): void {
    this.#calls.delete(this)
  }

  /** Notes that a request is being sent to an upstream. The silence counts from the first one. */
  dispatched(): void {
    this.#silentSince ??= performance.now()
  }

  /** Sends the head, or a keep-alive before the stream's first byte, if it is due. */
  tick(nowMs: number): void {
    const { response } = this.#call
    if (this.#silentSince === undefined || response.headersSent) return
    const waitMs = response.early ? KEEP_ALIVE_MS : this.#silenceMs
    if (nowMs - this.#silentSince >= waitMs) this.#send(nowMs)
  }

  /**
   * Sends a keep-alive in a stream that has begun, if it is due. `writes`: number of writes to the client so
   * far. `isBetweenEvents`: whether the last one ended an event, and the client has read what was sent.
   */
  keepOpen(nowMs: number, writes: number, isBetweenEvents: boolean): void {
    if (writes !== this.#writes) {
      this.#writes = writes
      this.#silentSince = nowMs
    } else if (isBetweenEvents && nowMs - (this.#silentSince ?? nowMs) >= KEEP_ALIVE_MS) this.#send(nowMs)
  }

  #send(nowMs: number): void {
    this.#silentSince = nowMs
    sendKeepAlive(this.#call, this.#form)
  }
}

/** The form of a call's stream; undefined if the call has none, or may not get its head before the upstream's. */
function formOf({ plan: { dialect, request } }: Call): StreamForm | undefined {
  if (!request.stream) return undefined
  return request.streamType === undefined ? FORMS[dialect.endpoint] : JSON_ARRAY
}

function sendKeepAlive(call: Call, form: StreamForm): void {
  const contentType = call.plan.request.streamType ?? 'text/event-stream'
  call.response.keepAlive(form.keepAlive, {
    headers: { ...call.headers(contentType, undefined), 'x-accel-buffering': 'no' },
    refusal: (body) => form.refusal(body, call),
  })
}

/**
 * Sends the head of a stream if the client understands only as an event of it that its request is too long. Codex
 * shortens a conversation after `response.failed` with `context_length_exceeded` (codex-rs/codex-api/src/sse/responses.rs
 * of openai/codex), and takes any 400 for a mistake of the user (src/api_bridge.rs beside it). It and the programs that
 * contain it state who they are in `originator`.
 */
export function beginForTooLong(call: Call, error: Error): void {
  const { response, plan, incoming } = call
  const isTooLong = error instanceof UpstreamRefusal && error.facts.code === TOO_LONG_CODE
  if (!isTooLong || plan.dialect.endpoint !== 'responses' || response.early) return
  const form = formOf(call)
  if (form && incoming.request.headers.originator !== undefined) sendKeepAlive(call, form)
}

/** Removes line ends. In JSON they stand only between values, because strings contain them escaped. */
function oneLine(json: Buffer): string {
  return json
    .toString()
    .trim()
    .replace(/[\r\n]+/g, ' ')
}

/** A response that begins and fails, because clients accept no other first event than `response.created`. */
function failedResponse(body: Buffer, { plan }: Call): Buffer {
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
