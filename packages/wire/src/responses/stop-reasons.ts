import { endReasonOf } from '../end-reasons.ts'
import { asRecord } from '../json/record.ts'
import type { Stop, StopReason } from '../reply.ts'

/** Reasons for clients why a response is incomplete; undefined where it is complete. */
const INCOMPLETE = {
  end: undefined,
  length: 'max_output_tokens',
  'tool-calls': undefined,
  refusal: 'content_filter',
  'stop-sequence': undefined,
  pause: undefined,
} as const satisfies Record<StopReason, string | undefined>

/** What is known about a response besides its status: whether it contains tool calls. */
interface AnswerFacts {
  readonly calledTools: boolean
}

/**
 * Determines from the status why a finished response stopped. Unknown reasons count as a normal end; an incomplete
 * response without a reason reached the limit.
 */
export function readResponsesStop(
  response: Readonly<Record<string, unknown>>,
  { calledTools }: AnswerFacts,
): Stop {
  const plainEnd = calledTools ? 'tool-calls' : 'end'
  if (response['status'] !== 'incomplete') return { reason: plainEnd }
  const reason = asRecord(response['incomplete_details'])?.['reason']
  if (typeof reason !== 'string') return { reason: 'length' }
  const end = endReasonOf(reason)
  if (!end) return { reason: plainEnd, isUnknown: true }
  if (end.class === 'good') return { reason: plainEnd }
  return { reason: end.class === 'failed' ? 'length' : end.stop }
}

/** The reason why a response is incomplete; undefined if it is complete. */
export function incompleteReason({ reason }: Stop): string | undefined {
  return INCOMPLETE[reason]
}
