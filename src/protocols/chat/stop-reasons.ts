import type { Stop, StopReason } from '../reply.ts'

/** What each reason is for a chat caller; `docs/api.md: Chat completions`, finish reasons. */
export const FINISH_REASONS = {
  end: 'stop',
  length: 'length',
  'tool-calls': 'tool_calls',
  refusal: 'content_filter',
  'stop-sequence': 'stop',
  pause: 'stop',
} as const satisfies Record<StopReason, string>

/** What chat upstreams say, the words of their dialects among them. */
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
 * Why a chat upstream's answer ended. A refusal is one whatever the reason; an answer that calls tools and
 * ends as usual wants their results (forced calls end with `stop`); words that nobody knows, or none, are the
 * usual end.
 */
export function stopOf(
  finishReason: string | undefined,
  { refused, calledTools }: { readonly refused: boolean; readonly calledTools: boolean },
): Stop {
  if (refused) return { reason: 'refusal' }
  const reason = REASONS.get(finishReason ?? 'stop') ?? 'end'
  if (reason === 'end' && calledTools) return { reason: 'tool-calls' }
  return { reason: reason === 'tool-calls' && !calledTools ? 'end' : reason }
}
