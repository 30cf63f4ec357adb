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

/** Determines from the status why a finished response stopped. */
export function readResponsesStop(
  response: Readonly<Record<string, unknown>>,
  { calledTools }: AnswerFacts,
): Stop {
  if (response['status'] === 'incomplete') {
    const reason = asRecord(response['incomplete_details'])?.['reason']
    const end = typeof reason === 'string' ? endReasonOf(reason) : undefined
    if (typeof reason === 'string' && !end) return { reason: 'length', isUnknown: true }
    return { reason: end?.class === 'filtered' || end?.class === 'refused' ? 'refusal' : 'length' }
  }
  return { reason: calledTools ? 'tool-calls' : 'end' }
}

/** The reason why a response is incomplete; undefined if it is complete. */
export function incompleteReason({ reason }: Stop): string | undefined {
  return INCOMPLETE[reason]
}
