import type { Answer, Question } from './answer.ts'
import type { Tool } from './tools-json.ts'

/** The thinking levels that the playground offers. */
export const THINKING_LEVELS = ['off', 'low', 'medium', 'high'] as const

export type ThinkingLevel = (typeof THINKING_LEVELS)[number]

/** The settings of a request; for an undefined setting the model's default applies. */
export interface CallSettings {
  readonly system: string
  readonly thinking: ThinkingLevel
  readonly temperature: number | undefined
  readonly topP: number | undefined
  readonly maxTokens: number | undefined
  readonly tools: readonly Tool[]
  /** The voice is for speech, the size for pictures. */
  readonly voice: string | undefined
  readonly size: string | undefined
  readonly stream: boolean
}

/** Maximum tokens for thinking at each level, the same numbers as in the gateway's conversion of efforts. */
export const THINKING_BUDGETS = { low: 1280, medium: 2048, high: 4096 } as const

/** A request that is not yet in the format of a protocol. */
export interface PlaygroundRequest extends CallSettings {
  readonly model: string
  readonly earlier: readonly AnsweredQuestion[]
  readonly question: Question
}

/** An earlier question of the conversation, with its answer. */
export interface AnsweredQuestion {
  readonly question: Question
  readonly answer: Answer
}

/** The object in a JSON text; an empty object if the text is not one. */
export function parseObjectOrEmpty(text: string): object {
  try {
    const value: unknown = JSON.parse(text || '{}')
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}

/** An object without its undefined fields. */
export function withoutUndefined(fields: Readonly<Record<string, unknown>>): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}
