import type { Stop, StopReason } from '../reply.ts'

/** What is known about a response besides its finish reason: whether it contains function calls. */
interface Answered {
  readonly calledTools: boolean
}

/** Finish reasons of a response that was stopped because of its content. */
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

/** Finish reasons that mean that a call is invalid. Such a call is not sent to the client. */
const BAD_CALLS = ['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL', 'TOO_MANY_TOOL_CALLS'] as const

/** Finish reasons by number, because some servers write enumerations as numbers. */
const NUMBERS = ['', 'STOP', 'MAX_TOKENS', 'SAFETY', 'RECITATION', 'OTHER'] as const

const REASONS: ReadonlyMap<string, StopReason> = new Map<string, StopReason>([
  ['MAX_TOKENS', 'length'],
  ...REFUSALS.map((name) => [name, 'refusal'] as const),
  ...BAD_CALLS.map((name) => [name, 'end'] as const),
])

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
export function readGeminiStop(finishReason: string, { calledTools }: Answered): Stop {
  const reason = REASONS.get(finishReason)
  return { reason: reason ?? (calledTools ? 'tool-calls' : 'end') }
}
