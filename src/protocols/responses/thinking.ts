import type { Dropped } from '../codec.ts'
import type { Thinking } from '../conversation.ts'
import {
  EFFORTS,
  type EffortName,
  isThinkingOff,
  nearestEffort,
  offEffort,
  requestedEffort,
} from '../thinking-effort.ts'
import { enumAt, fieldsAt, present } from '../field.ts'
import type { Capabilities } from '../model-capabilities.ts'
import { drop } from './dropped.ts'

/** The efforts that every upstream with efforts takes. */
const COMMON: readonly EffortName[] = ['low', 'medium', 'high']

/** `reasoning`: its effort. Summaries are given wherever there are any. */
export function decodeThinking(value: unknown, dropped: Dropped): Thinking | undefined {
  const given = present(value)
  if (given === undefined) return undefined
  const { effort, context, mode } = fieldsAt(given, 'reasoning')
  if (present(context) !== undefined && context !== 'auto') drop(dropped, 'reasoning.context')
  if (present(mode) !== undefined && mode !== 'standard') drop(dropped, 'reasoning.mode')
  return present(effort) === undefined ? undefined : enumAt(EFFORTS, effort, 'reasoning.effort')
}

/** `reasoning` as it is written. */
interface Reasoning {
  readonly effort?: EffortName
  readonly summary?: 'auto'
}

/**
 * `reasoning`: the nearest effort that the model takes, with summaries of its thoughts. Where
 * thinking is off and the model's efforts are not known, it is the one that the client named, if any: models
 * that cannot think refuse the field. It is left out where the model does not think, which is named.
 */
export function encodeThinking(
  thinking: Thinking | undefined,
  capabilities: Capabilities,
  dropped: Dropped,
): Reasoning | undefined {
  if (!thinking) return undefined
  const { efforts } = capabilities
  const isOff = isThinkingOff(thinking)
  if (capabilities.thinking === 'none') {
    if (!isOff) drop(dropped, 'thinking')
    return undefined
  }
  if (isOff) {
    const effort = efforts ? efforts[0] : offEffort(thinking)
    return effort && { effort }
  }
  const asked = requestedEffort(thinking)
  const effort = asked && nearestEffort(asked, efforts ?? COMMON)
  return { ...(effort && { effort }), summary: 'auto' }
}
