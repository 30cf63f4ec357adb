import { type FailureCulprit, failedEndOf } from './end-reasons.ts'
import { asRecord } from './json/record.ts'
import type { ReplyEvent, ReplyPart } from './reply.ts'
import { isErrorMember, isErrorObject } from './reply-facts.ts'
import type { ReportedUsage } from './reported-usage.ts'
import { readUpstreamError, statusOfError } from './upstream-error.ts'
import { WireError } from './wire-error.ts'

/** An error that an answer is or contains, although its HTTP status is 200. */
export interface AnswerError {
  /** JSON text of the error, in a form that `readUpstreamError` reads. */
  readonly data: string
  /** Set if the answer ended for a reason that means a failure: who caused it. */
  readonly culprit?: FailureCulprit | undefined
  /** Set if it is about an answer that has the form of its protocol, such as a reason for its end. */
  readonly isOfEnd?: true
  /** Set if the answer states an error, rather than only a reason. */
  readonly isStated?: true
}

/** The error of a stream that ended properly before an answer began. */
export const WITHOUT_ANSWER: AnswerError = {
  data: JSON.stringify({
    error: { type: 'api_error', message: 'The upstream ended its stream without a response.' },
  }),
}

/**
 * Recognizes a parsed answer that is an error, in the form of any protocol: an `error`, `type` or `object` that
 * says so, a response with the status `failed`, or a choice with an error. `isAnswer`: whether it has the
 * content of an answer; anything else that has a message counts as an error too. A prompt that was blocked
 * (`promptFeedback`) is not an error.
 */
export function errorInAnswer(value: unknown, isAnswer: boolean): AnswerError | undefined {
  const answer = asRecord(Array.isArray(value) ? value[0] : value)
  if (!answer) return undefined
  const { error, status, choices } = answer
  if (isErrorObject(answer))
    return {
      data: JSON.stringify(isAnswer || status === 'failed' ? { error } : answer),
      culprit: culpritOfChoices(choices),
    }
  if (status === 'failed') return { data: JSON.stringify({ error: { message: 'the response failed' } }) }
  if (Array.isArray(choices))
    for (const choice of choices) {
      const found = errorOfChoice(asRecord(choice))
      if (found) return found
    }
  if (isAnswer) return undefined
  const data = JSON.stringify(answer)
  return readUpstreamError(Buffer.from(data)).message === undefined ? undefined : { data }
}

/** Who caused the failure for which a choice of a chat answer ended; undefined if none did. */
export function culpritOfChoices(choices: unknown): FailureCulprit | undefined {
  if (!Array.isArray(choices)) return undefined
  return choices.map((choice) => failedEndOf(asRecord(choice)?.['finish_reason'])).find((end) => end)?.culprit
}

/** The error of a choice of a chat answer: its `error`, or a finish reason that means a failure. */
export function errorOfChoice(
  choice: Readonly<Record<string, unknown>> | undefined,
): AnswerError | undefined {
  const error = choice?.['error']
  return errorOfEnd(choice?.['finish_reason'], undefined, isErrorMember(error) ? error : undefined)
}

/**
 * The error of an answer that ended for this reason; undefined if the reason means no failure and there is no
 * error. `message`: the provider's words about the end. `error`: an error that is stated beside the reason.
 */
export function errorOfEnd(reason: unknown, message?: unknown, error?: unknown): AnswerError | undefined {
  const end = failedEndOf(reason)
  if (error !== undefined)
    return { data: JSON.stringify({ error }), culprit: end?.culprit, isOfEnd: true, isStated: true }
  if (!end) return undefined
  const words =
    typeof message === 'string' && message !== ''
      ? message
      : `the answer ended with the reason ${String(reason)}`
  const status = end.culprit === 'request' ? 400 : 500
  const data = JSON.stringify({ error: { message: words, code: reason, status } })
  return { data, culprit: end.culprit, isOfEnd: true }
}

/** Whether a body with this error still is a reply of its protocol. */
export function isReplyWith(error: AnswerError | undefined): boolean {
  return error === undefined || error.isOfEnd === true
}

/** The error of a stream as an event of the neutral form. */
export function failureEvent({ data, culprit }: AnswerError): Extract<ReplyEvent, { kind: 'failure' }> {
  const {
    type,
    message = 'The upstream reported an error in the middle of its response.',
    code,
  } = readUpstreamError(Buffer.from(data))
  return { kind: 'failure', type, message, code, status: statusOfError(data), culprit }
}

/** Thrown for a complete answer that is or contains an error. */
export class FailedAnswer extends WireError {
  readonly error: AnswerError
  /** The usage that the answer reports; undefined if it reports none. */
  readonly usage: ReportedUsage | undefined
  /** The content that the answer has beside its error. */
  readonly parts: readonly ReplyPart[]

  constructor(error: AnswerError, usage: ReportedUsage | undefined, parts: readonly ReplyPart[]) {
    super('upstream_error', 'The upstream sent an error in place of a response.')
    this.error = error
    this.usage = usage
    this.parts = parts
  }
}
