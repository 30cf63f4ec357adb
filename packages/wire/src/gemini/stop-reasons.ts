import type { Stop, StopReason } from '../reply.ts'

/** Facts of an answer other than its finish reason. */
interface Answered {
  readonly calledTools: boolean
}

/** Finish reasons for an answer that was stopped because of its content. */
const REFUSALS = [
  'SAFETY',
  'RECITATION',
  'BLOCKLIST',
  'PROHIBITED_CONTENT',
  'SPII',
  'IMAGE_SAFETY',
  'IMAGE_PROHIBITED_CONTENT',
  'IMAGE_RECITATION',
  'MODEL_ARMOR',
] as const

/** Finish reasons for invalid calls. They are not sent to the client. */
const BAD_CALLS = ['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL', 'TOO_MANY_TOOL_CALLS'] as const

/** Finish reasons by number, because some servers send enumerations as numbers. */
const NUMBERS = ['', 'STOP', 'MAX_TOKENS', 'SAFETY', 'RECITATION', 'OTHER'] as const

const REASONS: ReadonlyMap<string, StopReason> = new Map<string, StopReason>([
  ['MAX_TOKENS', 'length'],
  ...REFUSALS.map((name) => [name, 'refusal'] as const),
  ...BAD_CALLS.map((name) => [name, 'end'] as const),
])

/**
 * Finish reasons for clients, by the stop reason that all dialects share. Gemini cannot report which stop
 * sequence ended an answer.
 */
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
 * Derives the stop reason of a whole answer. The finish reason of a normal end does not say whether there
 * were calls; `calledTools` does. Unknown reasons count as a normal end.
 */
export function stopOf(finishReason: string, { calledTools }: Answered): Stop {
  const reason = REASONS.get(finishReason)
  return { reason: reason ?? (calledTools ? 'tool-calls' : 'end') }
}
