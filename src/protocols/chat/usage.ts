import type { Usage } from '../../domain/usage.ts'

/** Usage as a chat upstream reports it, made disjoint; undefined where it is missing or cannot be true. */
export function readChatUsage(_value: unknown): Usage | undefined {
  throw new Error('not yet')
}

/** What a whole reply says about itself. */
export interface ReplyFacts {
  /** It is a JSON object with a `choices` array and no error. */
  readonly valid: boolean
  readonly usage: Usage | undefined
  /** The reply is an error object, in spite of its status. */
  readonly error: boolean
  /** The generated text of all choices, for counting; parsed when asked for. */
  text(): string
}

/** Reads a whole reply's facts; never throws. */
export function usageOfReply(_bytes: Buffer): ReplyFacts {
  throw new Error('not yet')
}
