import { canonicalDigest } from '@sluice/wire/canonical-request'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { Headers } from '../../http/request.ts'
import type { AnswerFormsName } from './answer-bodies.ts'
import { type CacheControl, readCacheControl } from './cache-control.ts'

/**
 * Rules for keeping answers of an endpoint for equal requests. An object of this type can be posted to a
 * thread.
 */
export interface AnswerStorageRules {
  /** Name that separates the endpoint's answers from those of other endpoints with the same dialect. */
  readonly endpoint: string
  /** How the endpoint's answers convert between whole bodies and streams; absent if it has no streams. */
  readonly forms?: AnswerFormsName
  /** Whether streams end with their usage only for clients that ask for it. */
  readonly hasUsageOption?: true
  /** Whether a channel may store the answer, so that clients can refer to it. */
  readonly mayBeStored?: true
  /** Whether each answer has its own id, by which clients might refer to it. */
  readonly hasOwnIds?: true
}

/** What identifies equal requests, and what a request asks of the cache. */
export interface RequestIdentity {
  readonly keeping: AnswerStorageRules
  readonly control: CacheControl
  /** Whether the stream of this request ends with the usage. */
  readonly includeUsage: boolean
  /** Digest of the body, followed by the values of the request's headers that are forwarded to upstreams. */
  identity(): readonly string[]
}

const CHAT: AnswerStorageRules = { endpoint: 'chat', forms: 'chat', hasUsageOption: true }
const COMPLETIONS: AnswerStorageRules = {
  endpoint: 'completions',
  forms: 'completions',
  hasUsageOption: true,
}
const MESSAGES: AnswerStorageRules = { endpoint: 'messages', forms: 'messages' }
const GEMINI: AnswerStorageRules = { endpoint: 'gemini', forms: 'gemini' }
const RESPONSES: AnswerStorageRules = { endpoint: 'responses', forms: 'responses', hasOwnIds: true }
const STORED_RESPONSES: AnswerStorageRules = { ...RESPONSES, mayBeStored: true }

/** Members by which a request to the Responses API continues an earlier response. */
const CONTINUATIONS = ['previous_response_id', 'conversation'] as const

/** Rules for keeping chat completions in the answer cache. */
export const chatStorageRules = (): AnswerStorageRules => CHAT

/**
 * Rules for keeping text completions in the answer cache. Requests without a prompt are chat requests, which
 * older clients send to that endpoint.
 */
export const completionsStorageRules = (scan: ScannedObject): AnswerStorageRules =>
  scan.has('prompt') ? COMPLETIONS : { ...CHAT, endpoint: 'completions' }

/** Rules for keeping answers of the Messages API in the answer cache. */
export const messagesStorageRules = (): AnswerStorageRules => MESSAGES

/** Rules for keeping answers of Gemini's API in the answer cache. */
export const geminiStorageRules = (): AnswerStorageRules => GEMINI

/** Rules for keeping answers of an endpoint without streams in the answer cache. */
export const unstreamedStorageRules =
  (endpoint: string): (() => AnswerStorageRules) =>
  () => ({ endpoint })

/**
 * Rules for keeping responses in the answer cache; undefined for those that continue another response or run
 * in the background.
 */
export function responsesStorageRules(scan: ScannedObject): AnswerStorageRules | undefined {
  if (scan.kind('background') === 'true') return undefined
  if (CONTINUATIONS.some((name) => scan.has(name) && scan.kind(name) !== 'null')) return undefined
  return scan.kind('store') === 'false' ? RESPONSES : STORED_RESPONSES
}

/**
 * Members of a body that may differ between equal requests. The model is compared after routing; the other
 * members only determine the form of the answer, the user or the session.
 */
const UNCOUNTED: ReadonlySet<string> = new Set([
  'metadata',
  'model',
  'prompt_cache_key',
  'session_id',
  'stream',
  'stream_options',
])

/** Headers that are forwarded to the upstream and therefore must be equal. */
const COUNTED_HEADERS = ['anthropic-beta', 'anthropic-version', 'vendor-version'] as const

/**
 * Returns what is compared to find out whether two requests are equal. `identity` is computed only when it is
 * needed.
 */
export function requestIdentity(
  keeping: AnswerStorageRules,
  scan: ScannedObject,
  headers: Headers,
): RequestIdentity {
  return {
    keeping,
    control: readCacheControl(headers['cache-control']),
    includeUsage: keeping.hasUsageOption === true && includesUsage(scan),
    identity: () => [
      canonicalDigest(scan, UNCOUNTED).toString('base64'),
      ...COUNTED_HEADERS.map((name) => headers[name] ?? ''),
    ],
  }
}

function includesUsage(scan: ScannedObject): boolean {
  const options = scan.span('stream_options')
  if (!options || scan.kindOf(options.node) !== 'object') return false
  const node = scan.memberOf(options.node, 'include_usage')
  return node !== undefined && scan.kindOf(node) === 'true'
}
