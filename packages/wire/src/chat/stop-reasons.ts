import { endReasonOf } from '../end-reasons.ts'
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

/**
 * Determines why the reply of a chat upstream ended. A normal end with tool calls becomes `tool-calls`,
 * because forced calls end with `stop`. An unknown or missing reason means a normal end. `sequence`: the stop
 * sequence that ended the reply, if the upstream states one.
 */
export function readChatStop(
  finishReason: string | undefined,
  { calledTools }: { readonly calledTools: boolean },
  sequence?: string,
): Stop {
  const end = endReasonOf(finishReason ?? 'stop')
  const reason = end && 'stop' in end ? end.stop : 'end'
  if (reason === 'end' && calledTools) return { reason: 'tool-calls', ...(!end && UNKNOWN) }
  if (reason === 'end' && sequence !== undefined) return { reason: 'stop-sequence', sequence }
  if (reason === 'tool-calls' && !calledTools) return { reason: 'end' }
  return { reason, ...(!end && UNKNOWN) }
}

const UNKNOWN = { isUnknown: true } as const

/**
 * The stop sequence that ended a choice: `stop_reason` of vLLM, `matched_stop` of SGLang. Both are a token id if
 * a token ended it. https://docs.vllm.ai/en/latest/api/vllm/entrypoints/openai/chat_completion/protocol/,
 * https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/entrypoints/openai/protocol.py
 */
export function matchedStopOf(choice: Readonly<Record<string, unknown>>): string | undefined {
  const matched = choice['stop_reason'] ?? choice['matched_stop']
  return typeof matched === 'string' && matched !== '' ? matched : undefined
}
