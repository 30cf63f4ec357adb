import type { IncomingHttpHeaders } from 'node:http'
import type { Fields } from './fields.ts'
import type { FaultyProtocol } from './faults.ts'
import type { Refusal } from './refusal.ts'
import type { ResponseHistory } from './response-history.ts'

/** A text of a stream, and the number of tokens that are generated before it is sent. */
export interface Frame {
  readonly text: string
  readonly tokens: number
}

/** A reply to send: either a body with its number of generated tokens, or the frames of a stream. */
export type Reply = (
  | {
      readonly kind: 'bytes'
      readonly bytes: Buffer
      readonly contentType: string
      readonly tokens: number
    }
  | { readonly kind: 'whole'; readonly body: unknown; readonly tokens: number; readonly status?: number }
  | {
      readonly kind: 'stream'
      readonly frames: readonly Frame[]
      /** `text/event-stream` if absent. */
      readonly contentType?: string
      /** `latin1` if each character of a frame stands for one byte. */
      readonly encoding?: 'latin1'
    }
) & { readonly headers?: Readonly<Record<string, string>> }

/** Values that differ for each reply: the time in Unix seconds, and new ids. */
export interface ReplyTimeAndIds {
  readonly created: number
  id(prefix: string): string
}

/** A call of an upstream. `path` is what follows the version; `body` is empty if the call has none. */
export interface Call {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  readonly body: Fields
  /** The client's key. Each key has separate prompt caches. */
  readonly account: string
  /** The file in the field `file` of a form. */
  readonly file?: Buffer
  /** What the WebSocket of the call remembers. */
  readonly history?: ResponseHistory
}

/** A simulated provider. It has no side effects on its own: the server supplies time, ids and sockets. */
export interface Upstream {
  /** The protocol in which faults are played; absent if the provider plays none. */
  readonly faults?: FaultyProtocol
  /** Whether the provider serves WebSockets with the Responses API. */
  readonly hasSockets?: true
  /**
   * Returns the body of a call if it is for the main endpoint, with the fields `model` and `stream`;
   * undefined for other calls.
   */
  bodyIfServed(call: Call): Fields | undefined
  readonly models: readonly string[]
  /** Returns the client's key; empty if there is none. */
  keyOf(headers: IncomingHttpHeaders): string
  /** Creates the reply to a request whose key and model have been checked; throws `Refusal`. */
  reply(body: Fields, model: string, stamp: ReplyTimeAndIds, call: Call): Reply
  /** Creates the response body of a call to any other path; undefined if there is no such path. */
  other?(call: Call): unknown
  /** Renders the response body of a refusal. */
  refuse(refusal: Refusal, stamp: ReplyTimeAndIds): unknown
}

/**
 * Returns a `bodyIfServed` for POST requests to these paths (after the version) whose body contains
 * everything.
 */
export function bodyOfPost(...paths: readonly string[]): Upstream['bodyIfServed'] {
  return (call) => (call.method === 'POST' && paths.includes(call.path) ? call.body : undefined)
}

/** Returns the key of an `Authorization: Bearer` header; empty if there is none. */
export function bearerToken(headers: IncomingHttpHeaders): string {
  return /^Bearer\s+(\S.*)$/i.exec(headers.authorization ?? '')?.[1] ?? ''
}
