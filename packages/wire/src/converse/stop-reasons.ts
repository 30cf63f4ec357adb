import type { Stop, StopReason } from '../reply.ts'

/** Stop reasons of Converse; unknown ones mean a normal end. */
const REASONS: ReadonlyMap<unknown, StopReason> = new Map<unknown, StopReason>([
  ['tool_use', 'tool-calls'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['stop_sequence', 'stop-sequence'],
  ['guardrail_intervened', 'refusal'],
  ['content_filtered', 'refusal'],
])

/** Reads a stop reason; undefined if there is none. */
export function readStop(reason: unknown): Stop | undefined {
  if (typeof reason !== 'string' || reason === '') return undefined
  return { reason: REASONS.get(reason) ?? 'end' }
}
