import type { DroppedFields } from './codec.ts'
import type { SystemText } from './conversation.ts'

/**
 * Beginning of a line that Claude Code writes into a system block for Anthropic's billing. It has another value in each
 * request, so that no other provider could find the prompt in its cache.
 */
export const BILLING_HEADER = 'x-anthropic-billing-header:'

/**
 * Removes the line with the billing header from the system texts that begin with it, and removes a text that
 * has nothing else. Reports `billing_header` as dropped.
 */
export function withoutBillingHeader<Text extends SystemText>(
  system: readonly Text[],
  dropped: DroppedFields,
): Text[] {
  return system.flatMap((part) => {
    if (!part.text.startsWith(BILLING_HEADER)) return [part]
    dropped.add('billing_header')
    const end = part.text.indexOf('\n')
    const text = end < 0 ? '' : part.text.slice(end + 1)
    return text.trim() === '' ? [] : [{ ...part, text }]
  })
}
