import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import { type ConversationForm, openingDigest } from '@sluice/wire/conversation-digests'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { HeaderName, Headers } from '../../http/request.ts'

/** The conversation to which a call belongs. */
export interface Session {
  /** An id that the client sent, or the digest of the conversation's beginning. */
  readonly id: string
  /** Whether the client named it, in a header or in the body. */
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
/** Longer values of `metadata.user_id` are not searched. */
const MAX_USER_ID_LENGTH = 4_096
/** The part of a `user_id` of Claude Code that names the session. */
const USER_ID_PART = /(?:^|_)(session_[\w-]+)/

/**
 * The session of a call, named by a header or by the body, or else identified by the beginning of its conversation. Undefined for a
 * request without a conversation. `form` describes the client's dialect.
 */
export function sessionOf(
  headers: Headers,
  scan: ScannedObject,
  form: ConversationForm | undefined,
): Session | undefined {
  const id = namedId(headers, scan)
  const hasCacheKey = scan.has('prompt_cache_key')
  if (id !== undefined) return { id, isNamed: true, hasCacheKey }
  const digest = form && openingDigest(scan, form)
  return digest === undefined ? undefined : { id: digest, isNamed: false, hasCacheKey }
}

/** Finds the session of a call when it is first needed, and once. */
export function sessionFinder(find: () => Session | undefined): () => Session | undefined {
  let session: Session | false | undefined
  return () => (session ??= find() ?? false) || undefined
}

/** Identifies the session of a user to others, such as logs and providers. `length`: number of hex digits. */
export function sessionTag(
  key: Buffer,
  userId: number,
  { id, isNamed }: Pick<Session, 'id' | 'isNamed'>,
  length: number,
): string {
  return createHmac('sha256', keyObjectOf(key))
    .update(JSON.stringify(['session', userId, isNamed, id]))
    .digest('hex')
    .slice(0, length)
}

const KEY_OBJECTS = new WeakMap<Buffer, KeyObject>()

/** The key as an object: to make one for each call would cost five times as much as the HMAC. */
function keyObjectOf(key: Buffer): KeyObject {
  let object = KEY_OBJECTS.get(key)
  if (!object) KEY_OBJECTS.set(key, (object = createSecretKey(key)))
  return object
}

function namedId(headers: Headers, scan: ScannedObject): string | undefined {
  for (const name of SESSION_HEADERS) {
    const id = headers[name]?.trim()
    if (isId(id)) return id
  }
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
