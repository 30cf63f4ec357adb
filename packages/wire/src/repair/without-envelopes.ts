import { UNSIGNED_THOUGHT_ENVELOPE } from '../signature-envelope.ts'

const ENVELOPE = new RegExp(
  `,"encrypted_content":"${UNSIGNED_THOUGHT_ENVELOPE}"|(?<="signature":")${UNSIGNED_THOUGHT_ENVELOPE}`,
  'g',
)

/**
 * Removes the envelopes of unsigned thoughts from the JSON text that a codec wrote: the thoughts go back to the
 * provider that sent them without a signature.
 */
export function withoutEnvelopes(written: string): string {
  return written.replace(ENVELOPE, '')
}
