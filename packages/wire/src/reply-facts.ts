import type { AnswerNames } from './answer-names.ts'
import type { Diagnosis } from './diagnosis.ts'
import type { ToolUse } from './tool-use.ts'
import type { ArrivedMedia } from './received-media.ts'
import type { ReportedUsage } from './reported-usage.ts'
import type { Served } from './service-tier.ts'

/** Facts about a whole reply. */
export interface ReplyFacts {
  /** Whether it is a valid reply of its dialect and not an error. */
  readonly valid: boolean
  readonly usage: ReportedUsage | undefined
  /** What it states about how it was served; absent if only `usage` states it. */
  readonly served?: Served | undefined
  /** What it states about the prompt cache; absent if its dialect has no such statement. */
  readonly diagnosis?: Diagnosis | undefined
  /** Uses of the provider's tools that it reports; absent if its dialect does not report them. */
  readonly tools?: readonly ToolUse[]
  /** Whether it is an error object, independent of its status. */
  readonly error: boolean
  /** What it states about itself; absent if its dialect has no such statement. */
  names?(): AnswerNames
  /** Generated text, for counting tokens. */
  text(): string
  /** Audio and images in it, for counting; absent if its dialect has none. */
  arrived?(): ArrivedMedia
}

/** Reports whether an `error` member is an error; some providers send null in each reply. */
export function isError(value: unknown): boolean {
  return typeof value === 'object' ? value !== null : typeof value === 'string' && value !== ''
}
