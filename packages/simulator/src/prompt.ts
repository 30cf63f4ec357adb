import type { ConversationState } from './conversation.ts'
import type { Fields } from './fields.ts'

/** Tool that the client offers; `schema` is the JSON schema of its arguments. */
export interface Tool {
  readonly name: string
  readonly description: string
  readonly schema: Fields
  /** Whether its input is plain text; the schema then has it as the member `input`. */
  readonly takesText?: true
  /** Group to which the tool belongs for the client, in dialects with such groups. */
  readonly namespace?: string
}

/** Constraint on tool calls: free, none, any tool, or the named tool. */
export type ToolChoice = 'auto' | 'none' | 'required' | { readonly name: string }

/** Parts of a request that a simulated model needs, in any dialect. */
export interface Prompt extends ConversationState {
  readonly model: string
  /** Everything before the reply, in order; seeds the output and determines the prompt's tokens. */
  readonly transcript: string
  readonly tools: readonly Tool[]
  readonly toolChoice: ToolChoice
  /** Whether one reply may call several tools. */
  readonly parallelTools: boolean
  /** Whether the model announces a tool call in a sentence. */
  readonly announcesTools: boolean
  /** Whether thinking is generated first. */
  readonly thinks: boolean
  /** Schema of a JSON reply; undefined for prose. */
  readonly jsonSchema: Fields | undefined
  /** Maximum number of tokens to generate. */
  readonly maxTokens: number
  /** Texts that end the output. */
  readonly stop: readonly string[]
}
