import type { AnswerNames } from './answer-names.ts'
import type { Diagnosis } from './diagnosis.ts'
import type { ToolUse } from './tool-use.ts'
import type { ArrivedMedia } from './received-media.ts'
import type { ReportedUsage } from './reported-usage.ts'
import type { Served } from './service-tier.ts'

/** Facts about a whole reply. */
export interface ReplyFacts {
  /** Whether the reply is valid in its dialect and not an error. */
  readonly valid: boolean
  readonly usage: ReportedUsage | undefined
  /** What the reply states about tier and region of the service; absent if only `usage` states it. */
  readonly served?: Served | undefined
  /** What the reply states about the prompt cache; absent if its dialect has no such statement. */
  readonly diagnosis?: Diagnosis | undefined
  /** Uses of the provider's tools that the reply reports; absent if its dialect does not report uses. */
  readonly tools?: readonly ToolUse[]
  /** Whether the reply is an error object, regardless of the HTTP status. */
  readonly error: boolean
  /** Returns the reply's id, model and finish reasons; absent if its dialect has none. */
  names?(): AnswerNames
  /** Returns the generated text, to count its tokens. */
  text(): string
  /** Returns the audio and images in the reply, to count them; absent if its dialect has none. */
  arrived?(): ArrivedMedia
}

/** Reports whether the value of `error` is an error; some providers send null in each reply. */
export function isError(value: unknown): boolean {
  return typeof value === 'object' ? value !== null : typeof value === 'string' && value !== ''
}
