import type { Proof, ThinkingPart } from '../conversation.ts'
import type { Fields } from '../field.ts'
import { asRecord } from '../json/record.ts'

/** Members of a call in which Google's servers of this dialect tell and expect its signature. */
export function extraContent(signature: string | undefined): {
  readonly extra_content?: { readonly google: { readonly thought_signature: string } }
} {
  return signature === undefined ? {} : { extra_content: { google: { thought_signature: signature } } }
}

/** Reads the signature of a call, as a part in front of it; nothing without one. */
export function signatureIn(call: Fields): ThinkingPart[] {
  const value = asRecord(asRecord(call['extra_content'])?.['google'])?.['thought_signature']
  if (typeof value !== 'string' || value === '') return []
  return [{ kind: 'thinking', text: '', proof: { protocol: 'gemini', value, signs: 'call' } }]
}

/** Whether a mark in the reasoning stands for a proof: for signatures of the messages dialect alone. */
export function isMarked({ protocol }: Proof): boolean {
  return protocol === 'messages'
}

/** Signature of the next call; undefined for other proofs. */
export function callSignature({ protocol, signs, value }: Proof): string | undefined {
  return protocol === 'gemini' && signs === 'call' ? value : undefined
}
