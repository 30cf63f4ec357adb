import { canonicalDigest } from '@sluice/wire/canonical-request'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { Headers } from '../../http/request.ts'
import { type CacheControl, readCacheControl } from './cache-control.ts'

/** Dialects of answers that have a whole and a streamed form. */
export type FormsName = 'chat' | 'completions' | 'messages' | 'gemini' | 'responses'

/** How the answers of an endpoint are kept for equal requests. Can be posted to a thread. */
export interface AnswerKeeping {
  /** Name that separates its answers from those of other endpoints of the dialect. */
  readonly endpoint: string
  /** Dialect of the two forms of its answers; absent if it has no streams. */
  readonly forms?: FormsName
  /** Whether streams end with their usage only for clients that ask for it. */
  readonly hasUsageOption?: true
  /** Whether a channel may store the answer, so that clients can refer to it. */
  readonly mayBeStored?: true
  /** Whether each answer has an id of its own, by which clients might refer to it. */
  readonly hasOwnIds?: true
}

/** A request for an answer that may be kept. */
export interface EqualRequest {
  readonly keeping: AnswerKeeping
  readonly control: CacheControl
  /** Whether its stream ends with the usage. */
  readonly includeUsage: boolean
  /** Digest of the body, and the headers that go along with it. */
  identity(): readonly string[]
}

const CHAT: AnswerKeeping = { endpoint: 'chat', forms: 'chat', hasUsageOption: true }
const COMPLETIONS: AnswerKeeping = {
  endpoint: 'completions',
  forms: 'completions',
  hasUsageOption: true,
}
const MESSAGES: AnswerKeeping = { endpoint: 'messages', forms: 'messages' }
const GEMINI: AnswerKeeping = { endpoint: 'gemini', forms: 'gemini' }
const RESPONSES: AnswerKeeping = { endpoint: 'responses', forms: 'responses', hasOwnIds: true }
const STORED_RESPONSES: AnswerKeeping = { ...RESPONSES, mayBeStored: true }

/** Members by which a response continues another one. */
const CONTINUATIONS = ['previous_response_id', 'conversation'] as const

/** Chat completions. */
export const keepsChat = (): AnswerKeeping => CHAT

/** Completions, at whose endpoint older clients send chat requests. */
export const keepsCompletions = (scan: ScannedObject): AnswerKeeping =>
  scan.has('prompt') ? COMPLETIONS : { ...CHAT, endpoint: 'completions' }

/** Messages. */
export const keepsMessages = (): AnswerKeeping => MESSAGES

/** Gemini's answers. */
export const keepsGemini = (): AnswerKeeping => GEMINI

/** Answers without streams. */
export const keepsWhole =
  (endpoint: string): (() => AnswerKeeping) =>
  () => ({ endpoint })

/** Responses that neither continue another one nor go on without their client. */
export function keepsResponses(scan: ScannedObject): AnswerKeeping | undefined {
  if (scan.kind('background') === 'true') return undefined
  if (CONTINUATIONS.some((name) => scan.has(name) && scan.kind(name) !== 'null')) return undefined
  return scan.kind('store') === 'false' ? RESPONSES : STORED_RESPONSES
}

/**
 * Members that do not count for equality: the model, which counts as it is routed, and what names the form of the
 * answer, the user or the session.
 */
const UNCOUNTED: ReadonlySet<string> = new Set([
  'metadata',
  'model',
  'prompt_cache_key',
  'session_id',
  'stream',
  'stream_options',
])

/** Headers that go along with a request to its upstream. */
const COUNTED_HEADERS = ['anthropic-beta', 'anthropic-version', 'vendor-version'] as const

/** The request as it is compared with others. Nothing is computed before it is needed. */
export function equalRequest(keeping: AnswerKeeping, scan: ScannedObject, headers: Headers): EqualRequest {
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
