import type { AnswerError } from './answer-error.ts'
import type { AnswerMetadata } from './answer-metadata.ts'
import type { CacheDiagnosis } from './cache-diagnosis.ts'
import type { ToolUse } from './tool-use.ts'
import type { ReceivedMedia } from './received-media.ts'
import type { ReportedUsage } from './reported-usage.ts'
import type { StatedService } from './service-tier.ts'

/** What the gateway reads from a complete reply: its validity, error, usage and content. */
export interface ReplyFacts {
  /**
   * Whether this is a reply of its protocol and not an error. A reply that ended with a failure is one, and has an
   * `error`.
   */
  readonly valid: boolean
  readonly usage: ReportedUsage | undefined
  /** Service tier and region that the reply states; absent if only `usage` states them. */
  readonly served?: StatedService | undefined
  /** What the reply says about the prompt cache; absent if its protocol does not have that. */
  readonly diagnosis?: CacheDiagnosis | undefined
  /** Uses of the provider's tools; absent if the protocol does not report them. */
  readonly tools?: readonly ToolUse[]
  /** The error that the body is or contains, whatever its HTTP status; undefined if there is none. */
  readonly error: AnswerError | undefined
  /** Whether a reason for the end of the reply is not known. */
  readonly hasUnknownEnd?: boolean
  /** Id, model and finish reasons of the reply; absent if the protocol does not have them. */
  names?(): AnswerMetadata
  /** The generated text, for counting tokens. */
  text(): string
  /** Audio and images in the reply, for counting tokens; absent if the protocol has none. */
  arrived?(): ReceivedMedia
}

/** Whether a JSON object says that it is an error, in the form of any protocol. */
export function isErrorObject({ error, type, object }: Readonly<Record<string, unknown>>): boolean {
  return isErrorMember(error) || type === 'error' || object === 'error'
}

/** Whether the value of an `error` member is an error. Some providers send null in every reply. */
export function isErrorMember(value: unknown): boolean {
  return typeof value === 'object' ? value !== null : typeof value === 'string' && value !== ''
}
