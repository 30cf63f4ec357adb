import type { ConversionProtocol } from './protocols.ts'
import type { OpaquePart } from './conversation.ts'
import { asRecord } from './json/record.ts'

/** Member of an opaque part, by which it is recognized as signed; undefined if there are no such parts. */
const SIGNED: Readonly<Record<ConversionProtocol, ((block: Block) => boolean) | undefined>> = {
  chat: undefined,
  messages: ({ type }) => type === 'redacted_thinking',
  responses: undefined,
  gemini: undefined,
  converse: ({ reasoningContent }) => reasoningContent !== undefined,
}

type Block = Readonly<Record<string, unknown>>

/**
 * Reports whether a provider wants an opaque part back unchanged, as it does for thoughts that it encrypted.
 */
export function isSignedOpaque({ protocol, value }: Pick<OpaquePart, 'protocol' | 'value'>): boolean {
  return SIGNED[protocol]?.(asRecord(value) ?? {}) ?? false
}
