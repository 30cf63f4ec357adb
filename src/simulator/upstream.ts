import type { IncomingHttpHeaders } from 'node:http'
import type { Fields } from './fields.ts'
import type { Refusal } from './refusal.ts'

/** Text of a stream, and how many tokens' time passes before it is sent. */
export interface Frame {
  readonly text: string
  readonly tokens: number
}

/** An answer as it goes over the wire: a body that took so many tokens, or frames. */
export type Reply =
  | { readonly kind: 'whole'; readonly body: unknown; readonly tokens: number }
  | { readonly kind: 'stream'; readonly frames: readonly Frame[] }

/** What is different in each answer: the time, in Unix seconds, and fresh ids. */
export interface Stamp {
  readonly created: number
  id(prefix: string): string
}

/** One protocol as a provider speaks it. Pure: time, ids and sockets are the server's. */
export interface Upstream {
  /** The path after the version. */
  readonly path: string
  readonly models: readonly string[]
  /** The caller's key; empty if there is none. */
  keyOf(headers: IncomingHttpHeaders): string
  /** Answers a request whose key and model are known; throws Refusal. */
  reply(body: Fields, model: string, stamp: Stamp): Reply
  /** The body of a refusal. */
  refuse(refusal: Refusal, stamp: Stamp): unknown
}

/** The key of an `Authorization: Bearer` header; empty if there is none. */
export function bearer(headers: IncomingHttpHeaders): string {
  return /^Bearer\s+(\S.*)$/i.exec(headers.authorization ?? '')?.[1] ?? ''
}
