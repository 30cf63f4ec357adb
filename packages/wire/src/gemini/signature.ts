import type { OpaquePart, ProviderSignature, ThinkingPart } from '../conversation.ts'
import {
  SIGNATURE_ENVELOPE_PREFIX,
  openSignatureEnvelope,
  sealOpaquePart,
  sealSignature,
} from '../signature-envelope.ts'

/**
 * Google's documented placeholder for the signature of a call that no Gemini model made. It is sent as plain
 * text, not in base64.
 */
export const UNSIGNED_CALL_SIGNATURE = 'skip_thought_signature_validator'

/**
 * Beginning of every `thoughtSignature` in which the gateway has enclosed data of another protocol. The
 * length of the prefix is a multiple of three bytes, so that its base64 does not depend on what follows.
 */
const SEALED = Buffer.from(`"${Buffer.from(SIGNATURE_ENVELOPE_PREFIX).toString('base64')}`)

/**
 * Whether a body may contain a signature that encloses one of another provider. If this returns false, the
 * body certainly contains none.
 */
export function mayHoldSealedSignature(body: Buffer): boolean {
  return body.includes(SEALED)
}

/**
 * Reads a `thoughtSignature` as a part. If the gateway has enclosed a signature or a part of another protocol
 * in it, returns the enclosed one.
 */
export function readSignature(
  signature: string,
  text: string,
  signs?: ProviderSignature['signs'],
): ThinkingPart | OpaquePart {
  const content = Buffer.from(signature, 'base64').toString()
  const enclosed = openSignatureEnvelope(content, 'gemini')
  if ('opaque' in enclosed) return enclosed.opaque
  const { proof } = enclosed
  if (!proof) return { kind: 'thinking', text }
  if (proof.protocol !== 'gemini') return { kind: 'thinking', text, proof }
  return { kind: 'thinking', text, proof: { ...proof, value: signature, ...(signs && { signs }) } }
}

/**
 * Writes a signature as `thoughtSignature`, in base64. A signature of another protocol is enclosed in an
 * envelope.
 */
export function writeSignature(proof: ProviderSignature): string {
  if (proof.protocol === 'gemini') return proof.value
  return Buffer.from(sealSignature(proof, 'gemini')).toString('base64')
}

/**
 * Writes a part of another protocol as `thoughtSignature`, in which the gateway finds it again when the
 * client sends the conversation back.
 */
export function encodeOpaquePart(part: Pick<OpaquePart, 'protocol' | 'value'>): string {
  return Buffer.from(sealOpaquePart(part)).toString('base64')
}
