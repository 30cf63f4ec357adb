import type { OpaquePart, Proof, ThinkingPart } from '../conversation.ts'
import { ENVELOPE_PREFIX, openEnvelope, sealOpaque, sealProof } from '../envelope.ts'

/**
 * Google's documented placeholder for the signature of a call that no Gemini model made. It is sent as plain
 * text, not in base64.
 */
export const UNSIGNED_CALL = 'skip_thought_signature_validator'

/**
 * The beginning of every signature that contains an envelope. The length of the prefix is a multiple of three
 * bytes, so that its base64 is always the same.
 */
const SEALED = Buffer.from(`"${Buffer.from(ENVELOPE_PREFIX).toString('base64')}`)

/**
 * Reports whether a body may contain an envelope with another provider's signature; if false, it certainly
 * contains none.
 */
export function mayHoldSealedSignature(body: Buffer): boolean {
  return body.includes(SEALED)
}

/**
 * Reads a `thoughtSignature` as a part. If it is an envelope that the gateway made of another dialect's
 * proof, the part is that proof.
 */
export function readSignature(
  signature: string,
  text: string,
  signs?: Proof['signs'],
): ThinkingPart | OpaquePart {
  const content = Buffer.from(signature, 'base64').toString()
  const enclosed = openEnvelope(content, 'gemini')
  if ('opaque' in enclosed) return enclosed.opaque
  const { proof } = enclosed
  if (!proof) return { kind: 'thinking', text }
  if (proof.protocol !== 'gemini') return { kind: 'thinking', text, proof }
  return { kind: 'thinking', text, proof: { ...proof, value: signature, ...(signs && { signs }) } }
}

/**
 * Renders a proof as `thoughtSignature`, which is base64; a proof of another dialect is put into an envelope.
 */
export function writeSignature(proof: Proof): string {
  if (proof.protocol === 'gemini') return proof.value
  return Buffer.from(sealProof(proof, 'gemini')).toString('base64')
}

/** Renders an opaque part of another dialect as `thoughtSignature`. */
export function encodeOpaquePart(part: Pick<OpaquePart, 'protocol' | 'value'>): string {
  return Buffer.from(sealOpaque(part)).toString('base64')
}
