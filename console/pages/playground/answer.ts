import type { ClientProtocol } from '@sluice/wire/protocols'

/** The protocols in which a question is sent if the user compares protocols. */
export const COMPARED_PROTOCOLS = ['chat', 'messages'] as const

/** Endpoints that are not conversations: a call does not include earlier questions. */
export const MEDIA_ENDPOINTS = ['images', 'speech', 'embeddings'] as const

/** The name of an endpoint for images, speech or embeddings. */
export type MediaEndpoint = (typeof MEDIA_ENDPOINTS)[number]

/** The protocol or endpoint with which the playground calls a model. */
export type Protocol = ClientProtocol | MediaEndpoint

/** Whether calls in this protocol belong to a conversation. */
export function isConversationProtocol(protocol: Protocol): protocol is ClientProtocol {
  return !MEDIA_ENDPOINTS.some((medium) => medium === protocol)
}

/** The model that answers a question, and the protocol in which it is called. */
export interface ModelAndProtocol {
  readonly model: string
  readonly protocol: Protocol
}

/** A tool call; `input` is the model's own JSON text. */
export interface ToolCall {
  readonly id: string
  readonly name: string
  readonly input: string
}

/** The result of a tool call, as the user typed it. */
export interface ToolResult {
  readonly id: string
  readonly text: string
}

/** Thinking with its signature, which the messages protocol requires to be sent back. */
export interface SignedThinking {
  readonly thinking: string
  readonly signature: string
}

/** Embeddings: their length, and the similarity of each pair. */
export interface EmbeddingComparison {
  readonly dimensions: number
  /** The cosine similarity of each pair of texts; texts are counted from 1. */
  readonly cosines: readonly { readonly texts: readonly [number, number]; readonly cosine: number }[]
}

/** The content of a response so far. */
export interface Content {
  readonly text: string
  readonly thinking: string
  readonly calls: readonly ToolCall[]
  readonly signed: readonly SignedThinking[]
  /** Pictures as data URLs, or as addresses on other servers, which are not loaded. */
  readonly pictures?: readonly string[]
  /** The object URL of generated speech, which is valid until the page is closed. */
  readonly audio?: string
  readonly vectors?: EmbeddingComparison
  /** The message of an error inside the stream. */
  readonly error?: string
}

/** The refusal of a call: the gateway's message and its code. */
export interface RefusedCallMessage {
  readonly message: string
  readonly code: string
}

/** One response to a question; times are in milliseconds from the start of the call. */
export interface Answer extends ModelAndProtocol {
  readonly keyId: number
  readonly state: 'running' | 'done' | 'stopped' | 'failed'
  readonly content: Content
  /** The events of the response, or its whole body, unchanged. */
  readonly raw: readonly string[]
  readonly callId?: string
  readonly firstMs?: number
  readonly totalMs?: number
  readonly refused?: RefusedCallMessage
}

/** A question: a message of the user, or the results of tool calls. */
export interface Question {
  readonly text: string
  /** The images as data URLs. */
  readonly images: readonly string[]
  readonly results: readonly ToolResult[]
}

/** A question with its responses, one for each model and protocol that was called. */
export interface Exchange {
  readonly id: number
  readonly question: Question
  readonly answers: readonly Answer[]
}

export const EMPTY_CONTENT: Content = { text: '', thinking: '', calls: [], signed: [] }
