import { endReasonOf } from '../end-reasons.ts'
import { asRecord, stringOrEmpty } from '../json/record.ts'
import type { Stop, StopReason } from '../reply.ts'

/** Stop reasons for clients; `docs/api.md: Messages response`. */
const STOP_REASONS = {
  end: 'end_turn',
  length: 'max_tokens',
  'stop-sequence': 'stop_sequence',
  'tool-calls': 'tool_use',
  refusal: 'refusal',
  pause: 'pause_turn',
} as const satisfies Record<StopReason, string>

/**
 * Reads why a message ended, from the message or a `message_delta`; undefined if it has not ended. An unknown
 * reason counts as a normal end.
 */
export function readStop(holder: unknown): Stop | undefined {
  const { stop_reason: given, stop_sequence: sequence, stop_details: details } = asRecord(holder) ?? {}
  if (typeof given !== 'string' || given === '') return undefined
  const end = endReasonOf(given)
  const reason = end && 'stop' in end ? end.stop : 'end'
  const words = stringOrEmpty(asRecord(details)?.['explanation'])
  return {
    reason,
    ...(!end && { isUnknown: true }),
    ...(typeof sequence === 'string' && { sequence }),
    ...(reason === 'refusal' && words && { words }),
  }
}

/** What is known about a message besides its stop reason. */
interface ReplyTraits {
  readonly calledTools: boolean
  /** Whether the reply contains a refusal. */
  readonly refused: boolean
}

/** The members of a message that has not ended. */
export const NOT_STOPPED = { container: null, stop_reason: null, stop_sequence: null, stop_details: null }

/**
 * Writes the members of a message or `message_delta` that say how it ended. A normal end is written as a
 * refusal or tool use if the reply contains one.
 */
export function writeStop({ reason, sequence, words }: Stop, { calledTools, refused }: ReplyTraits): object {
  const plainEnd = refused ? 'refusal' : calledTools ? 'tool-calls' : 'end'
  const effectiveReason = reason === 'end' ? plainEnd : reason
  return {
    ...NOT_STOPPED,
    stop_reason: STOP_REASONS[effectiveReason],
    stop_sequence: sequence ?? null,
    ...(effectiveReason === 'refusal' && {
      stop_details: { type: 'refusal', category: null, explanation: words ?? null },
    }),
  }
}
