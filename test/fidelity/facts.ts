/** Why an answer ended, in no dialect's words. */
export type Finish = 'stop' | 'length' | 'tools' | 'filter'

/** A call of a tool that the client runs. */
export interface ToolCall {
  /** Undefined where the dialect's answer has none. */
  readonly id: string | undefined
  readonly name: string
  /** The arguments as JSON; as their text where they are none. */
  readonly input: unknown
}

/**
 * Content of an answer, whatever its dialect. Read by JSON.parse alone and none of the product's code.
 */
export interface Facts {
  readonly text: string
  readonly reasoning: string
  /** Words in which the model declined, where the dialect sets them apart; they are in `text`, too. */
  readonly refusal: string
  readonly calls: readonly ToolCall[]
  /** Undefined where no reason is stated. */
  readonly finish: Finish | undefined
  readonly usage: Usage | undefined
  /** Events that end the stream for its clients; 1 for a whole answer. */
  readonly ends: number
  /** Errors within the answer. */
  readonly errors: number
}

/** Tokens: all of the prompt, how many of them were read from a cache, and all that was generated. */
export interface Usage {
  readonly prompt: number
  readonly cached: number
  readonly output: number
}

// oxlint-disable-next-line typescript/no-explicit-any -- JSON of a provider
export type Json = Record<string, any>

export const DIALECTS = ['chat', 'messages', 'responses', 'gemini'] as const
export type Dialect = (typeof DIALECTS)[number]

/** Stands for the last frame of a chat stream. */
export const DONE: Json = Object.freeze({ done: true })

/** Arguments that come in pieces by path, which are not put together here. */
export const UNREAD = Symbol('arguments in pieces')

/** Arguments as JSON: none are an empty object, and a text that is no JSON stays one. */
export function inputOf(text: unknown): unknown {
  if (typeof text !== 'string') return text ?? {}
  if (text.trim() === '') return {}
  try {
    return (JSON.parse(text) as unknown) ?? {}
  } catch {
    return text
  }
}

/** A plain end after calls is one for the sake of the calls: not all dialects tell them apart. */
export function finishAfter(calls: readonly unknown[], finish: Finish | undefined): Finish | undefined {
  if (finish === 'stop' || finish === 'tools') return calls.length > 0 ? 'tools' : 'stop'
  return finish
}
