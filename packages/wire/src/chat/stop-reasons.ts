import type { Stop, StopReason } from '../reply.ts'

/** The finish reasons that chat clients receive; `docs/api.md: Chat completions`, finish reasons. */
export const FINISH_REASONS = {
  end: 'stop',
  length: 'length',
  'tool-calls': 'tool_calls',
  refusal: 'content_filter',
  'stop-sequence': 'stop',
  pause: 'stop',
} as const satisfies Record<StopReason, string>

/** The gateway's own stop reasons, by the finish reasons of chat upstreams and their variants. */
const REASONS: ReadonlyMap<string, StopReason> = new Map<string, StopReason>([
  ['stop', 'end'],
  ['length', 'length'],
  ['tool_calls', 'tool-calls'],
  ['function_call', 'tool-calls'],
  ['content_filter', 'refusal'],
  ['max_tokens', 'length'],
  ['model_length', 'length'],
  ['insufficient_system_resource', 'length'],
])

/**
 * Determines why the reply of a chat upstream ended. A normal end with tool calls becomes `tool-calls`,
 * because forced calls end with `stop`. An unknown or missing reason means a normal end.
 */
export function readChatStop(
  finishReason: string | undefined,
  { calledTools }: { readonly calledTools: boolean },
): Stop {
  const reason = REASONS.get(finishReason ?? 'stop') ?? 'end'
  if (reason === 'end' && calledTools) return { reason: 'tool-calls' }
  return { reason: reason === 'tool-calls' && !calledTools ? 'end' : reason }
}
