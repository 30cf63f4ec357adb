import type { DroppedFields } from '../codec.ts'
import type { Thinking } from '../conversation.ts'
import {
  EFFORTS,
  type EffortName,
  isThinkingOff,
  nearestEffort,
  disablingEffort,
  requestedEffort,
} from '../thinking.ts'
import { requireEnumValue, requireObject, nullToUndefined } from '../field.ts'
import { asRecord } from '../json/record.ts'
import type { Capabilities } from '../model-capabilities.ts'
import { reportDropped } from './dropped-fields.ts'

/** Efforts accepted by every upstream that has a setting for the effort. */
const COMMON: readonly EffortName[] = ['low', 'medium', 'high']

/** Decodes the effort in `reasoning`. */
export function decodeThinking(value: unknown, dropped: DroppedFields): Thinking | undefined {
  const given = nullToUndefined(value)
  if (given === undefined) return undefined
  const { effort, context, mode } = requireObject(given, 'reasoning')
  if (nullToUndefined(context) !== undefined && context !== 'auto')
    reportDropped(dropped, 'reasoning.context')
  if (nullToUndefined(mode) !== undefined && mode !== 'standard') reportDropped(dropped, 'reasoning.mode')
  return nullToUndefined(effort) === undefined
    ? undefined
    : requireEnumValue(EFFORTS, effort, 'reasoning.effort')
}

/** Whether `reasoning` asks for summaries of the thoughts. `generate_summary` is an older name. */
export function asksForSummary(value: unknown): boolean {
  const { summary, generate_summary: older } = asRecord(value) ?? {}
  return [summary, older].some((one) => typeof one === 'string' && one !== 'none')
}

/** The value of `reasoning` in a responses request. */
interface Reasoning {
  readonly effort?: EffortName
  readonly summary?: 'auto'
}

/**
 * Encodes `reasoning`: the nearest effort that the model accepts, and a request for summaries. If thinking is
 * off and the model's efforts are unknown, the client's own value is used, if there is one, because models
 * without thinking refuse the field. If the model cannot think, the field is left out and reported as
 * dropped.
 */
export function encodeThinking(
  thinking: Thinking | undefined,
  capabilities: Capabilities,
  dropped: DroppedFields,
): Reasoning | undefined {
  if (!thinking) return undefined
  const { efforts } = capabilities
  const isOff = isThinkingOff(thinking)
  if (capabilities.thinking === 'none') {
    if (!isOff) reportDropped(dropped, 'thinking')
    return undefined
  }
  if (isOff) {
    const effort = efforts ? efforts[0] : disablingEffort(thinking)
    return effort && { effort }
  }
  const replyContext = requestedEffort(thinking)
  const effort = replyContext && nearestEffort(replyContext, efforts ?? COMMON)
  return { ...(effort && { effort }), summary: 'auto' }
}
