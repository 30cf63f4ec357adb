import type { ConversationState } from './conversation.ts'
import type { Fields } from './fields.ts'

/** A tool that the client offers; `schema` is the JSON schema of its arguments. */
export interface Tool {
  readonly name: string
  readonly description: string
  readonly schema: Fields
  /**
   * Whether the input of the tool is plain text; `schema` then describes an object with the field `input`.
   */
  readonly takesText?: true
  /** Namespace of the tool, in protocols that divide tools into namespaces. */
  readonly namespace?: string
}

/** Whether the model must call tools: it may, must not, must call any, or must call the named one. */
export type ToolChoice = 'auto' | 'none' | 'required' | { readonly name: string }

/** The parts of a request that a simulated model needs, independent of the protocol. */
export interface Prompt extends ConversationState {
  readonly model: string
  /**
   * Everything before the reply, in order. It is the seed of the output, and its length determines the number
   * of input tokens.
   */
  readonly transcript: string
  readonly tools: readonly Tool[]
  readonly toolChoice: ToolChoice
  /** Whether one reply may call several tools. */
  readonly parallelTools: boolean
  /** Whether the model writes a sentence before it calls a tool that it was free to leave. */
  readonly announcesTools: boolean
  /** Whether the model thinks before it replies. */
  readonly thinks: boolean
  /** Schema of the reply if it is JSON; undefined for prose. */
  readonly jsonSchema: Fields | undefined
  /** Maximum number of tokens to generate. */
  readonly maxTokens: number
  /** Texts that end the output. */
  readonly stop: readonly string[]
}
