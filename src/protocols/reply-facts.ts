import type { ToolUse } from '../domain/tool-use.ts'
import type { ArrivedMedia } from './arrived-media.ts'
import type { ReportedUsage } from './reported-usage.ts'

/** Facts about a whole reply. */
export interface ReplyFacts {
  /** Whether it is a valid reply of its dialect, and no error. */
  readonly valid: boolean
  readonly usage: ReportedUsage | undefined
  /** Uses of the provider's tools that it shows; absent where its dialect has none. */
  readonly tools?: readonly ToolUse[]
  /** Whether it is an error object, whatever its status. */
  readonly error: boolean
  /** Generated text, for counting. */
  text(): string
  /** Sound and pictures of it, for counting; absent where its dialect has none. */
  arrived?(): ArrivedMedia
}

/** Whether an `error` member reports an error; some providers send null in each reply. */
export function isError(value: unknown): boolean {
  return typeof value === 'object' ? value !== null : typeof value === 'string' && value !== ''
}
