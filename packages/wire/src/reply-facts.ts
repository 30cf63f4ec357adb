import type { AnswerMetadata } from './answer-metadata.ts'
import type { CacheDiagnosis } from './cache-diagnosis.ts'
import type { ToolUse } from './tool-use.ts'
import type { ReceivedMedia } from './received-media.ts'
import type { ReportedUsage } from './reported-usage.ts'
import type { StatedService } from './service-tier.ts'

/** What the gateway reads from a complete reply: its validity, error, usage and content. */
export interface ReplyFacts {
  /** Whether this is a valid reply of its protocol and not an error. */
  readonly valid: boolean
  readonly usage: ReportedUsage | undefined
  /** Service tier and region that the reply states; absent if only `usage` states them. */
  readonly served?: StatedService | undefined
  /** What the reply says about the prompt cache; absent if its protocol does not have that. */
  readonly diagnosis?: CacheDiagnosis | undefined
  /** Uses of the provider's tools; absent if the protocol does not report them. */
  readonly tools?: readonly ToolUse[]
  /** Whether the body is an error object, whatever its HTTP status. */
  readonly error: boolean
  /** Id, model and finish reasons of the reply; absent if the protocol does not have them. */
  names?(): AnswerMetadata
  /** The generated text, for counting tokens. */
  text(): string
  /** Audio and images in the reply, for counting tokens; absent if the protocol has none. */
  arrived?(): ReceivedMedia
}

/** Whether the value of an `error` member is an error. Some providers send null in every reply. */
export function isErrorMember(value: unknown): boolean {
  return typeof value === 'object' ? value !== null : typeof value === 'string' && value !== ''
}
