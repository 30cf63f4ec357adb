import { endReasonOf } from '../end-reasons.ts'
import type { Stop, StopReason } from '../reply.ts'

/** What is known about a response besides its finish reason. */
interface AnswerFacts {
  /** Whether it contains function calls. */
  readonly calledTools: boolean
  /** The provider's words about its end, or about the blocked prompt; empty if there are none. */
  readonly words: string
}

/** Finish reasons by number, because some servers write enumerations as numbers. */
const NUMBERS = ['', 'STOP', 'MAX_TOKENS', 'SAFETY', 'RECITATION', 'OTHER'] as const

/** Finish reasons for clients. This protocol cannot say which stop sequence ended a response. */
export const FINISH_REASONS = {
  end: 'STOP',
  length: 'MAX_TOKENS',
  'tool-calls': 'STOP',
  refusal: 'SAFETY',
  'stop-sequence': 'STOP',
  pause: 'STOP',
} as const satisfies Record<StopReason, string>

/** Returns the finish reason of a candidate; undefined if it has none yet. */
export function finishReasonOf(value: unknown): string | undefined {
  const name = typeof value === 'number' ? (NUMBERS[value] ?? 'OTHER') : value
  return typeof name === 'string' && name !== '' && name !== 'FINISH_REASON_UNSPECIFIED' ? name : undefined
}

/**
 * Derives the stop reason of a complete response. The finish reason of a normal end does not say whether
 * there were calls; `calledTools` does. Unknown reasons count as a normal end.
 */
export function readGeminiStop(finishReason: string, { calledTools, words }: AnswerFacts): Stop {
  const end = endReasonOf(finishReason)
  const reason = end && 'stop' in end ? end.stop : 'end'
  return {
    reason: reason === 'end' && calledTools ? 'tool-calls' : reason,
    ...(!end && { isUnknown: true }),
    ...(reason === 'refusal' && words && { words }),
  }
}

/** Writes the members of a candidate that say how it ended, each followed by a comma. */
export function writeGeminiStop({ reason, words }: Stop): string {
  const message = words === undefined ? '' : `"finishMessage":${JSON.stringify(words)},`
  return `"finishReason":"${FINISH_REASONS[reason]}",${message}`
}
