import type { OpaquePart, Proof } from '../conversation.ts'
import { asRecord, parseRecord } from '../json/record.ts'

/**
 * Marks encrypted reasoning that no provider of this wire made: it holds what another wire wants back
 * untouched.
 */
const PREFIX = 'sluice-1.'

const PROTOCOLS: ReadonlySet<unknown> = new Set(['chat', 'messages'])

/** Content of an envelope: the proof of a thought, or a part that only its own dialect knows. */
type Enclosed = { readonly proof: Proof } | { readonly opaque: OpaquePart }

/** A proof of another wire as `encrypted_content`; one of this wire as it is. */
export function sealProof(proof: Proof): string {
  return proof.protocol === 'responses' ? proof.value : seal({ protocol: proof.protocol, proof: proof.value })
}

/** A part of another wire as `encrypted_content`. */
export function sealOpaque({ protocol, value }: Pick<OpaquePart, 'protocol' | 'value'>): string {
  return seal({ protocol, value })
}

/** Whether `encrypted_content` is an envelope, which no provider made. */
export function isEnvelope(content: string): boolean {
  return content.startsWith(PREFIX)
}

/** Opens `encrypted_content`; without an envelope it is a proof of responses itself. */
export function open(content: string): Enclosed {
  const own: Enclosed = { proof: { protocol: 'responses', value: content } }
  if (!isEnvelope(content)) return own
  const enclosed = parseRecord(Buffer.from(content.slice(PREFIX.length), 'base64url').toString())
  const protocol = enclosed?.['protocol']
  if (!PROTOCOLS.has(protocol)) return own
  const from = protocol as Proof['protocol']
  const proof = enclosed?.['proof']
  if (typeof proof === 'string') return { proof: { protocol: from, value: proof } }
  const value = asRecord(enclosed?.['value'])
  return value ? { opaque: { kind: 'opaque', protocol: from, value } } : own
}

function seal(content: object): string {
  return PREFIX + Buffer.from(JSON.stringify(content)).toString('base64url')
}
