import { NO_USAGE, type Usage } from '../../../domain/usage.ts'
import type { Measure, MeasuredCall, PassedResponses, Passage } from '../passage.ts'

/** Responses with vectors, of which `begin` takes in each. */
export function embeddingsResponses(begin: () => Passage): PassedResponses {
  return {
    accept: 'application/json',
    begin: (contentType) => (/^text\/(?:event-stream|html)\b/i.test(contentType) ? undefined : begin()),
    measureUnanswered: (call) => measureEmbeddings(call, undefined),
  }
}

/** By the tokens that were reported, else by those of the prompt; a price of calls alone needs neither. */
export async function measureEmbeddings(call: MeasuredCall, reported: Usage | undefined): Promise<Measure> {
  if (reported) return { usage: reported, isEstimate: false }
  const { perToken, free } = call.rate
  if (!perToken && !free) return { usage: NO_USAGE, isEstimate: false }
  return { usage: { ...NO_USAGE, input: await call.countChargedPrompt() }, isEstimate: true }
}
