import { createSecretKey, type KeyObject } from 'node:crypto'
import {
  type ConversationComparisonRules,
  conversationOpening,
  keyedHashInput,
  mayBeCached,
} from '@sluice/wire/conversation-digests'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { Channel } from '../domain/records/channel.ts'
import type { HeaderName, Headers } from '../http/request.ts'
import { ShortHmac } from './digests/short-hmac.ts'

/** The conversation to which a call belongs. */
export interface CallSession {
  /**
   * HMAC of the user and of the session's id or, if the client sent none, of the beginning of the
   * conversation; in hex digits.
   */
  readonly tag: string
  /** The id that the client sent; undefined if it sent none. */
  readonly name: string | undefined
  /** Whether the client sent an id, in a header or in the body. */
  readonly isNamed: boolean
  /** Whether the client sent a `prompt_cache_key`. */
  readonly hasCacheKey: boolean
}

/** Headers that name a session, in order of precedence. */
export const SESSION_HEADERS = [
  'x-session-id',
  'x-claude-code-session-id',
  'session_id',
  'session-id',
  'x-qwen-code-session-id',
  'x-session-affinity',
  'x-bf-session-id',
] as const satisfies readonly HeaderName[]

/** Members of a body that name a session, in order of precedence. */
const SESSION_MEMBERS = ['session_id', 'prompt_cache_key'] as const

const MAX_ID_LENGTH = 256
/** Values of `metadata.user_id` with more characters than this are not searched for a session. */
const MAX_USER_ID_LENGTH = 4_096
/** The part of a `user_id` of Claude Code that names the session. */
const USER_ID_PART = /(?:^|_)(session_[\w-]+)/

/** The user of a session, and the secret key for its tag. */
export interface SessionOwner {
  readonly key: KeyObject
  /** Computes the tag of a session, an HMAC with `key`. */
  readonly hmac: ShortHmac
  readonly userId: number
}

/** Finds the session of a call; undefined if it has none. */
export type SessionFinder = (owner: SessionOwner) => CallSession | undefined

/** Finds the sessions of calls. The secret key makes their tags. */
export class Sessions {
  readonly #keys: Pick<SessionOwner, 'key' | 'hmac'>

  constructor(key: Buffer) {
    this.#keys = { key: createSecretKey(key), hmac: new ShortHmac(key) }
  }

  /** The session of a call; undefined if it has none or is free. */
  of(
    userId: number,
    {
      charging,
      session: find,
    }: {
      readonly charging?: 'free' | 'unpaid'
      readonly session?: SessionFinder
    },
  ): CallSession | undefined {
    return charging === 'free' ? undefined : find?.({ ...this.#keys, userId })
  }
}

/** The name of a session in rows of the usage log: 16 hex digits; empty without a session. */
export function sessionInRow(session: CallSession | undefined): string {
  return session?.tag.slice(0, 16) ?? ''
}

/**
 * The session of a call, named by a header or by the body, or else identified by the beginning of its conversation if a
 * provider may cache it; otherwise undefined. `form` describes the client's dialect, and `continuesStored` says whether
 * the request refers to an earlier answer.
 */
export function sessionOfCall(
  owner: SessionOwner,
  headers: Headers,
  scan: ScannedObject,
  form: ConversationComparisonRules,
  continuesStored = false,
): CallSession | undefined {
  const id = namedId(headers, scan)
  const isNamed = id !== undefined
  if (!isNamed && !continuesStored && !mayBeCached(scan, form)) return undefined
  const opening = isNamed ? [Buffer.from(id)] : conversationOpening(scan, form)
  if (!opening) return undefined
  return { tag: tagOf(owner, isNamed, opening), name: id, isNamed, hasCacheKey: scan.has('prompt_cache_key') }
}

/**
 * Finds the session of a request that is not a conversation; undefined if the client did not name one. For a
 * form, `scan` is undefined, and only its headers can name a session.
 */
export function namedSessionFinder(headers: Headers, scan?: ScannedObject): SessionFinder | undefined {
  const id = namedId(headers, scan)
  if (id === undefined) return undefined
  const hasCacheKey = scan?.has('prompt_cache_key') ?? false
  return (owner) => ({ tag: tagOf(owner, true, [Buffer.from(id)]), name: id, isNamed: true, hasCacheKey })
}

/** Returns a function that finds the session at its first call and then remembers it. */
export function sessionFinder(
  headers: Headers,
  scan: ScannedObject,
  form: ConversationComparisonRules,
  continuesStored = false,
): SessionFinder {
  let session: CallSession | false | undefined
  return (owner) =>
    (session ??= sessionOfCall(owner, headers, scan, form, continuesStored) ?? false) || undefined
}

function tagOf({ key, hmac, userId }: SessionOwner, isNamed: boolean, parts: readonly Buffer[]): string {
  const facts = Buffer.from(`session ${userId} ${isNamed ? 'named' : 'begins'} `)
  return hmac.hex([facts, ...keyedHashInput(parts, key)])
}

function namedId(headers: Headers, scan: ScannedObject | undefined): string | undefined {
  for (const name of SESSION_HEADERS) {
    const id = headers[name]?.trim()
    if (isId(id)) return id
  }
  if (!scan) return undefined
  for (const name of SESSION_MEMBERS) {
    const id = scan.kind(name) === 'string' ? scan.value(name) : undefined
    if (isId(id)) return id
  }
  const id = idInMetadata(scan)
  return isId(id) ? id : undefined
}

function idInMetadata(scan: ScannedObject): unknown {
  const metadata = scan.span('metadata')
  if (!metadata || scan.kindOf(metadata.node) !== 'object') return undefined
  const node = scan.memberOf(metadata.node, 'user_id')
  if (node === undefined || scan.kindOf(node) !== 'string') return undefined
  if (scan.endOf(node) - scan.startOf(node) > MAX_USER_ID_LENGTH) return undefined
  const userId = scan.parse(node) as string
  if (userId.startsWith('{')) {
    try {
      return (JSON.parse(userId) as { readonly session_id?: unknown } | null)?.session_id
    } catch {
      return undefined
    }
  }
  return USER_ID_PART.exec(userId)?.[1]
}

function isId(id: unknown): id is string {
  return typeof id === 'string' && id !== '' && id.length <= MAX_ID_LENGTH
}

/** Format of header values that may be forwarded. */
const PRINTABLE = /^[\x20-\x7e]{1,256}$/

/**
 * The headers with which the client named its session, if the channel allows them: names and values
 * alternate.
 */
export function sessionHeaders(headers: Headers, { allow }: Channel): readonly string[] {
  if (!allow.has('session')) return []
  return SESSION_HEADERS.flatMap((name) => {
    const value = headers[name]
    return value !== undefined && PRINTABLE.test(value) ? [name, value] : []
  })
}
