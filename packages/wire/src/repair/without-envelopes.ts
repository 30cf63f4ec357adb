import { UNSIGNED_THOUGHT_ENVELOPE } from '../signature-envelope.ts'

const ENVELOPE = new RegExp(
  `,"encrypted_content":"${UNSIGNED_THOUGHT_ENVELOPE}"|(?<="signature":")${UNSIGNED_THOUGHT_ENVELOPE}`,
  'g',
)

/**
 * What a codec wrote, as JSON text, without envelopes of unsigned thoughts: they go back to the provider that wrote
 * them so.
 */
export function withoutEnvelopes(written: string): string {
  return written.replace(ENVELOPE, '')
}
