/**
 * The scripted upstream's response to one request. It can be given as bytes where a test needs invalid ones.
 */
export type Behaviour = (Whole | Streamed | Status | Silence | Raw | Drop) & {
  /** Nothing is sent before this promise settles. */
  readonly after?: Promise<unknown>
}

/** A whole response of the chat dialect. */
export interface Whole {
  readonly kind: 'whole'
  readonly content?: string
  /** The JSON text of the usage object in the response; null omits it. */
  readonly usage?: string | null
  /** Bytes sent in place of the completion. */
  readonly body?: string | Buffer
  readonly headers?: Readonly<Record<string, string | string[]>>
}

/** A stream of `events` content events. */
export interface Streamed {
  readonly kind: 'stream'
  /** Number of content events; Infinity streams until the client hangs up. Default 5. */
  readonly events?: number
  /** The text of each content event. */
  readonly word?: string
  /** Milliseconds between two events. */
  readonly paceMs?: number
  /** The stream does not end before this promise settles. */
  readonly endsAfter?: Promise<unknown>
  /** The JSON text of the usage object; null omits it. */
  readonly usage?: string | null
  /**
   * Where the usage is sent. `frame`: in a frame with empty choices, if the request asked for it; `always`:
   * in such a frame for every request. Default `frame`.
   */
  readonly usageIn?: 'frame' | 'always' | 'finish chunk'
  /** How the stream ends after its events. Default `done`. */
  readonly ending?: 'done' | 'no done' | 'stall' | 'reset' | 'close' | 'error' | 'half frame'
  /** The text of every frame, instead of generated ones; `events`, `word` and `usage` then have no effect. */
  readonly frames?: readonly string[]
  /** More frames, sent once a promise settles. */
  readonly rest?: { readonly after: Promise<unknown>; readonly frames: readonly string[] }
  /** Whether to write each byte separately. */
  readonly drip?: boolean
  readonly headers?: Readonly<Record<string, string | string[]>>
}

/** A status with a body. */
export interface Status {
  readonly kind: 'status'
  readonly status: number
  readonly body?: string
  readonly headers?: Readonly<Record<string, string | string[]>>
}

/** Receives the request and never responds. */
export interface Silence {
  readonly kind: 'silence'
}

/** Bytes sent on the connection, which then ends. */
export interface Raw {
  readonly kind: 'raw'
  readonly bytes: string | Buffer
  readonly ending: 'close' | 'reset' | 'stall'
}

/**
 * Closes the connection without a response; `only if reused`: the first request on a connection is answered.
 */
export interface Drop {
  readonly kind: 'drop'
  readonly when?: 'always' | 'only if reused'
}

/** The usage object of the chat dialect as JSON text. */
export function usageText(prompt: number, completion: number, cached?: number): string {
  const details = cached === undefined ? '' : `,"prompt_tokens_details":{"cached_tokens":${cached}}`
  return `{"prompt_tokens":${prompt},"completion_tokens":${completion},"total_tokens":${prompt + completion}${details}}`
}

/** An error body in the chat dialect's envelope. */
export function errorBody(
  message: string,
  type = 'invalid_request_error',
  code: string | null = null,
): string {
  return JSON.stringify({ error: { message, type, param: null, code } })
}

/**
 * A whole completion. Unusual spacing, unknown fields and large numbers reveal any rewriting by the gateway.
 */
export function completionText(content: string, usage: string | null, model = 'upstream-model'): string {
  const head = `{"id":"chatcmpl-1",  "object":"chat.completion","created":1700000000,"model":${JSON.stringify(model)},"x_unknown":9007199254740993`
  const choice = `{"index":0,"message":{"role":"assistant","content":${JSON.stringify(content)},"refusal":null},"logprobs":null,"finish_reason":"stop"}`
  return `${head},"choices":[${choice}]${usage === null ? '' : `,"usage":${usage}`}}\n`
}

/** One content event. */
export function contentFrame(text: string): string {
  return frame(`{"index":0,"delta":{"content":${JSON.stringify(text)}},"logprobs":null,"finish_reason":null}`)
}

/** The frame with the role, before the content. */
export function roleFrame(): string {
  return frame('{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}')
}

/** The chunk with the finish reason, and with the usage where that is reported there. */
export function finishFrame(usage?: string): string {
  return frame('{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}', usage)
}

/** The chunk with empty choices and the usage. */
export function usageFrame(usage: string): string {
  return frame('', usage)
}

export const DONE_FRAME = 'data: [DONE]\n\n'

function frame(choice: string, usage?: string): string {
  const tail = usage === undefined ? '' : `,"usage":${usage}`
  return `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"upstream-model","choices":[${choice}]${tail}}\n\n`
}
