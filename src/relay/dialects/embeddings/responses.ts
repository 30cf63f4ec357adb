import { NO_USAGE, type Usage } from '@sluice/wire/usage'
import type { Call } from '../../call.ts'
import type { Measure, PassedResponses, Passthrough } from '../passthrough.ts'

/** Passes responses with vectors through; `begin` creates the reader of each. */
export function embeddingsResponses(
  begin: () => Passthrough,
  measureUnanswered: PassedResponses['measureUnanswered'] = (call) => measureEmbeddings(call, undefined),
): PassedResponses {
  return {
    accept: 'application/json',
    begin: (contentType) => (/^text\/(?:event-stream|html)\b/i.test(contentType) ? undefined : begin()),
    measureUnanswered,
  }
}

/**
 * Measures by the reported tokens, otherwise by those of the prompt. If only calls have a price, neither is
 * needed.
 */
export function measureEmbeddings(call: Call, reported: Usage | undefined): Promise<Measure> {
  if (reported) return Promise.resolve({ usage: reported, isEstimate: false })
  return measureCounted(call, NO_USAGE, () => call.countChargedPrompt())
}

/** Measures by the tokens that `count` returns, in addition to those reported. */
export async function measureCounted(
  { plan: { rate } }: Call,
  reported: Usage,
  count: () => Promise<number>,
): Promise<Measure> {
  if (!rate.perToken && !rate.free) return { usage: reported, isEstimate: false }
  return { usage: { ...reported, input: reported.input + (await count()) }, isEstimate: true }
}
