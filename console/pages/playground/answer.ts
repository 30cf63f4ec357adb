/** Protocols of the playground. */
export const PROTOCOLS = ['chat', 'messages'] as const

/** A protocol of the playground. */
export type Protocol = (typeof PROTOCOLS)[number]

/** A call of a tool; `input` is the model's own JSON text. */
export interface ToolCall {
  readonly id: string
  readonly name: string
  readonly input: string
}

/** Result of a tool call, as somebody typed it. */
export interface ToolResult {
  readonly id: string
  readonly text: string
}

/** Thinking with the signature that the messages protocol wants back. */
export interface SignedThinking {
  readonly thinking: string
  readonly signature: string
}

/** Content of an answer, as far as it has come. */
export interface Content {
  readonly text: string
  readonly thinking: string
  readonly calls: readonly ToolCall[]
  readonly signed: readonly SignedThinking[]
  /** The sentence of an error inside the stream. */
  readonly error?: string
}

/** A refusal of a call, as the gateway says it. */
export interface Refused {
  readonly message: string
  readonly code: string
}

/** One answer to a question; times in milliseconds from the start of the call. */
export interface Answer {
  readonly protocol: Protocol
  readonly model: string
  readonly keyId: number
  readonly state: 'running' | 'done' | 'stopped' | 'failed'
  readonly content: Content
  /** Events or the whole body, as they came. */
  readonly raw: readonly string[]
  readonly callId?: string
  readonly firstMs?: number
  readonly totalMs?: number
  readonly refused?: Refused
}

/** A question: a message, or the results of tool calls. */
export interface Question {
  readonly text: string
  /** Images as data URLs. */
  readonly images: readonly string[]
  readonly results: readonly ToolResult[]
}

/** A question with its answers, one for each protocol that was asked. */
export interface Exchange {
  readonly id: number
  readonly question: Question
  readonly answers: readonly Answer[]
}

export const NO_CONTENT: Content = { text: '', thinking: '', calls: [], signed: [] }
