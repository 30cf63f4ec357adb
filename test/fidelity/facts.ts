/** Why a response ended, independent of the dialect. */
export type Finish = 'stop' | 'length' | 'tools' | 'filter'

/** A call of a tool that the client runs. */
export interface ToolCall {
  /** Undefined where the dialect's response has none. */
  readonly id: string | undefined
  readonly name: string
  /** The arguments as JSON; as text where they are not JSON. */
  readonly input: unknown
}

/** The content of a response in any dialect. It is read with JSON.parse only, without code of the product. */
export interface Facts {
  readonly text: string
  readonly reasoning: string
  /** The words with which the model declined, where the dialect separates them; they are in `text`, too. */
  readonly refusal: string
  /** The provider's words about a refusal, where the dialect separates them from the answer. */
  readonly explanation: string
  readonly calls: readonly ToolCall[]
  /** Undefined where no reason is stated. */
  readonly finish: Finish | undefined
  readonly usage: Usage | undefined
  /** The number of events that end the stream for its clients; 1 for a whole response. */
  readonly ends: number
  /** Errors within the answer. */
  readonly errors: number
}

/** Tokens: the whole prompt, how many of them were read from a cache, and all generated ones. */
export interface Usage {
  readonly prompt: number
  readonly cached: number
  readonly output: number
}

// oxlint-disable-next-line typescript/no-explicit-any -- JSON of a provider
export type Json = Record<string, any>

export const DIALECTS = ['chat', 'messages', 'responses', 'gemini'] as const
export type Dialect = (typeof DIALECTS)[number]

/** Represents the last frame of a chat stream. */
export const DONE: Json = Object.freeze({ done: true })

/** Arguments that arrive in pieces by path, which are not assembled here. */
export const UNREAD = Symbol('arguments in pieces')

/** Arguments as JSON: missing ones are an empty object, and a text that is not JSON stays a text. */
export function inputOf(text: unknown): unknown {
  if (typeof text !== 'string') return text ?? {}
  if (text.trim() === '') return {}
  try {
    return (JSON.parse(text) as unknown) ?? {}
  } catch {
    return text
  }
}

/** A normal end after calls counts as one because of the calls: not all dialects distinguish them. */
export function finishAfter(calls: readonly unknown[], finish: Finish | undefined): Finish | undefined {
  if (finish === 'stop' || finish === 'tools') return calls.length > 0 ? 'tools' : 'stop'
  return finish
}
