import type { OpaquePart } from './conversation.ts'
import { asRecord } from './json/record.ts'

/**
 * Reports whether a provider wants an opaque part back unchanged, as it does for thoughts that it encrypted.
 */
export function isSignedOpaque({ protocol, value }: Pick<OpaquePart, 'protocol' | 'value'>): boolean {
  const block = asRecord(value)
  if (protocol === 'converse') return block?.['reasoningContent'] !== undefined
  return protocol === 'messages' && block?.['type'] === 'redacted_thinking'
}
