import { NO_USAGE, type Usage } from '../../../domain/usage.ts'
import type { Measure, MeasuredCall, PassedResponses, Passage } from '../passage.ts'

/** Responses with vectors, of which `begin` takes in each. */
export function embeddingsResponses(
  begin: () => Passage,
  measureUnanswered: PassedResponses['measureUnanswered'] = (call) => measureEmbeddings(call, undefined),
): PassedResponses {
  return {
    accept: 'application/json',
    begin: (contentType) => (/^text\/(?:event-stream|html)\b/i.test(contentType) ? undefined : begin()),
    measureUnanswered,
  }
}

/** By the tokens that were reported, else by those of the prompt; a price of calls alone needs neither. */
export function measureEmbeddings(call: MeasuredCall, reported: Usage | undefined): Promise<Measure> {
  if (reported) return Promise.resolve({ usage: reported, isEstimate: false })
  return measureCounted(call, NO_USAGE, () => call.countChargedPrompt())
}

/** By the tokens that `count` finds, beside those that were reported. */
export async function measureCounted(
  { rate }: MeasuredCall,
  reported: Usage,
  count: () => Promise<number>,
): Promise<Measure> {
  if (!rate.perToken && !rate.free) return { usage: reported, isEstimate: false }
  return { usage: { ...reported, input: reported.input + (await count()) }, isEstimate: true }
}
