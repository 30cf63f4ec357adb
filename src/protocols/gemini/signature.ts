import type { OpaquePart, Proof, ThinkingPart } from '../conversation.ts'
import { ENVELOPE_PREFIX, open, sealOpaque, sealProof } from '../envelope.ts'

/**
 * Stands for the signature of a call that no Gemini model made; documented by Google, and given as it is, not
 * in base64.
 */
export const UNSIGNED_CALL = 'skip_thought_signature_validator'

/** Beginning of every sealed signature: the length of the prefix leaves no bits over in base64. */
const SEALED = Buffer.from(`"${Buffer.from(ENVELOPE_PREFIX).toString('base64')}`)

/** Whether a body may hold the envelope of another provider's signature: none does where this is false. */
export function mayHoldSealedSignature(body: Buffer): boolean {
  return body.includes(SEALED)
}

/**
 * Reads a `thoughtSignature` as the part that holds it. One that the gateway made of another dialect's proof
 * is that proof again.
 */
export function readSignature(
  signature: string,
  text: string,
  signs?: Proof['signs'],
): ThinkingPart | OpaquePart {
  const content = Buffer.from(signature, 'base64').toString()
  const enclosed = open(content, 'gemini')
  if ('opaque' in enclosed) return enclosed.opaque
  const { proof } = enclosed
  if (!proof) return { kind: 'thinking', text }
  if (proof.protocol !== 'gemini') return { kind: 'thinking', text, proof }
  return { kind: 'thinking', text, proof: { ...proof, value: signature, ...(signs && { signs }) } }
}

/** Writes a proof as `thoughtSignature`, which is base64: one of another dialect in an envelope. */
export function writeSignature(proof: Proof): string {
  if (proof.protocol === 'gemini') return proof.value
  return Buffer.from(sealProof(proof, 'gemini')).toString('base64')
}

/** Writes a part of another dialect as `thoughtSignature`. */
export function writeOpaque(part: Pick<OpaquePart, 'protocol' | 'value'>): string {
  return Buffer.from(sealOpaque(part)).toString('base64')
}
