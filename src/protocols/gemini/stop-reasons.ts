import type { Stop, StopReason } from '../reply.ts'

/** Facts of an answer beside its finish reason. */
interface Answered {
  readonly calledTools: boolean
}

/** Reasons by which an answer was stopped for what it says. */
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

/** Calls that went wrong: the client has none to run. */
const BAD_CALLS = ['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL', 'TOO_MANY_TOOL_CALLS'] as const

/** Reasons in the form of numbers, which some servers write for enumerations. */
const NUMBERS = ['', 'STOP', 'MAX_TOKENS', 'SAFETY', 'RECITATION', 'OTHER'] as const

const REASONS: ReadonlyMap<string, StopReason> = new Map<string, StopReason>([
  ['MAX_TOKENS', 'length'],
  ...REFUSALS.map((name) => [name, 'refusal'] as const),
  ...BAD_CALLS.map((name) => [name, 'end'] as const),
])

/** Finish reasons for clients; a sequence that ended an answer cannot be told. */
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
 * Derives the stop of a whole answer: the usual reason says nothing of calls, which may have come earlier.
 * Unknown reasons are the usual one.
 */
export function stopOf(finishReason: string, { calledTools }: Answered): Stop {
  const reason = REASONS.get(finishReason)
  return { reason: reason ?? (calledTools ? 'tool-calls' : 'end') }
}
