import type { IncomingHttpHeaders } from 'node:http'
import type { Fields } from './fields.ts'
import type { Refusal } from './refusal.ts'

/** Text of a stream, and the number of tokens generated before it is sent. */
export interface Frame {
  readonly text: string
  readonly tokens: number
}

/** Reply to send: a body, with the number of generated tokens, or the frames of a stream. */
export type Reply = (
  | {
      readonly kind: 'bytes'
      readonly bytes: Buffer
      readonly contentType: string
      readonly tokens: number
    }
  | { readonly kind: 'whole'; readonly body: unknown; readonly tokens: number }
  | {
      readonly kind: 'stream'
      readonly frames: readonly Frame[]
      /** `text/event-stream` unless given. */
      readonly contentType?: string
      /** `latin1` if each character of a frame is one byte. */
      readonly encoding?: 'latin1'
    }
) & { readonly headers?: Readonly<Record<string, string>> }

/** Values that differ for each reply: time in Unix seconds, and new ids. */
export interface ReplyStamp {
  readonly created: number
  id(prefix: string): string
}

/** Call of an upstream. `path` follows the version; `body` is empty if there is none. */
export interface Call {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  readonly body: Fields
  /** The client's key. Each key has separate prompt caches. */
  readonly account: string
  /** The field `file` of a form. */
  readonly file?: Buffer
}

/** Dialect of a simulated provider. It is pure: the server supplies time, ids and sockets. */
export interface Upstream {
  /**
   * Returns the body of a call of its main endpoint, with `model` and `stream`; undefined for other calls.
   */
  bodyIfServed(call: Call): Fields | undefined
  readonly models: readonly string[]
  /** Client's key; empty if there is none. */
  keyOf(headers: IncomingHttpHeaders): string
  /** Creates the reply to a request whose key and model have been checked; throws `Refusal`. */
  reply(body: Fields, model: string, stamp: ReplyStamp, call: Call): Reply
  /** Creates the body of the response to a call of another path; undefined if there is no such path. */
  other?(call: Call): unknown
  /** Renders the body of a refusal. */
  refuse(refusal: Refusal, stamp: ReplyStamp): unknown
}

/** Handles calls of endpoints whose bodies contain everything; `paths` follow the version. */
export function postTo(...paths: readonly string[]): Upstream['bodyIfServed'] {
  return (call) => (call.method === 'POST' && paths.includes(call.path) ? call.body : undefined)
}

/** Returns the key of an `Authorization: Bearer` header; empty if there is none. */
export function bearer(headers: IncomingHttpHeaders): string {
  return /^Bearer\s+(\S.*)$/i.exec(headers.authorization ?? '')?.[1] ?? ''
}
