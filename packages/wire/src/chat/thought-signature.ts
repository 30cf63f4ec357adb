import type { Proof, ThinkingPart } from '../conversation.ts'
import type { Fields } from '../field.ts'
import { asRecord } from '../json/record.ts'

/** Members of a call with its signature, as Google's chat endpoint sends and expects it. */
export function extraContent(signature: string | undefined): {
  readonly extra_content?: { readonly google: { readonly thought_signature: string } }
} {
  return signature === undefined ? {} : { extra_content: { google: { thought_signature: signature } } }
}

/** Reads the signature of a call as a part before the call; an empty list if there is none. */
export function signatureIn(call: Fields): ThinkingPart[] {
  const value = asRecord(asRecord(call['extra_content'])?.['google'])?.['thought_signature']
  if (typeof value !== 'string' || value === '') return []
  return [{ kind: 'thinking', text: '', proof: { protocol: 'gemini', value, signs: 'call' } }]
}

/** Reports whether a mark in the reasoning replaces a proof; only for signatures of the messages dialect. */
export function isMarked({ protocol }: Proof): boolean {
  return protocol === 'messages'
}

/** Signature for the next call, if the proof is one; undefined for other proofs. */
export function callSignature({ protocol, signs, value }: Proof): string | undefined {
  return protocol === 'gemini' && signs === 'call' ? value : undefined
}
