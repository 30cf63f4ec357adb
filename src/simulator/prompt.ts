import type { ConversationState } from './conversation.ts'
import type { Fields } from './fields.ts'

/** A tool that the caller offers; `schema` is the JSON schema of its arguments. */
export interface Tool {
  readonly name: string
  readonly description: string
  readonly schema: Fields
}

/** Whether a tool is to be called: as the model likes, never, some tool, or the tool of that name. */
export type ToolChoice = 'auto' | 'none' | 'required' | { readonly name: string }

/** The parts of a request that a simulated model needs, whichever protocol it came in. */
export interface Prompt extends ConversationState {
  readonly model: string
  /** Everything before the answer, in order; seeds the answer, and is what the prompt is counted by. */
  readonly transcript: string
  readonly tools: readonly Tool[]
  readonly toolChoice: ToolChoice
  /** Whether one answer may call several tools. */
  readonly parallelTools: boolean
  /** Whether the model says a sentence before it calls a tool. */
  readonly announcesTools: boolean
  /** Whether it thinks aloud first. */
  readonly thinks: boolean
  /** The schema of a JSON answer; undefined for prose. */
  readonly jsonSchema: Fields | undefined
  /** Upper bound of everything generated, in tokens. */
  readonly maxTokens: number
  /** Texts that end the answer. */
  readonly stop: readonly string[]
}
