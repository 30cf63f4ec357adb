import type { ANSWER_FORMS } from '@sluice/wire/answer-forms-by-name'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'

/**
 * Rules for keeping answers of an endpoint for equal requests. An object of this type can be posted to a
 * thread.
 */
export interface AnswerStorageRules {
  /** Name that separates the endpoint's answers from those of other endpoints with the same dialect. */
  readonly endpoint: string
  /** How the endpoint's answers convert between whole bodies and streams; absent if it has no streams. */
  readonly forms?: keyof typeof ANSWER_FORMS
  /** Whether streams end with their usage only for clients that ask for it. */
  readonly hasUsageOption?: true
  /** Whether a channel may store the answer, so that clients can refer to it. */
  readonly mayBeStored?: true
  /** Whether each answer has its own id, by which clients might refer to it. */
  readonly hasOwnIds?: true
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
