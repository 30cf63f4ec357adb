import { type ConversionProtocol, protocolsThat } from '../domain/protocols.ts'
import type { OpaquePart, Proof } from './conversation.ts'
import { asRecord, parseRecord } from './json/record.ts'
import type { ScannedObject } from './json/scanned-object.ts'

/**
 * Marks a signature that no provider of the wire made on which it stands: it holds what another wire wants
 * back untouched.
 */
export const ENVELOPE_PREFIX = 'sluice-1.'
/** The same as a JSON string begins with it. */
const ENVELOPE_BEGINNING = Buffer.from(`"${ENVELOPE_PREFIX}`)

const CONVERSATIONS: ReadonlySet<unknown> = new Set(protocolsThat(({ isConversation }) => isConversation))

/**
 * Content of an envelope: the proof of a thought, if it has one, or a part that only its own dialect knows.
 */
export type Enclosed = ({ readonly proof?: Proof } | { readonly opaque: OpaquePart }) & {
  /** Place of the thought, where the dialect does not tell it otherwise. */
  readonly place?: unknown
}

/** Envelope of a thought that nobody signed, for clients that drop a thought without any signature. */
export const UNSIGNED_THOUGHT: string = seal({ thought: 'unsigned' })

/** Stand-in for the provider's index of a web page, where another provider found it. */
export const FOREIGN_PAGE: string = seal({ page: 'foreign' })

/** A proof as it stands on a wire: one of its own as it is, one of another in an envelope. */
export function sealProof(
  { protocol, value, signs }: Proof,
  wire: ConversionProtocol,
  place?: object,
): string {
  return protocol === wire ? value : seal({ protocol, proof: value, signs, place })
}

/** A part of another wire in an envelope. */
export function sealOpaque(
  { protocol, value }: Pick<OpaquePart, 'protocol' | 'value'>,
  place?: object,
): string {
  return seal({ protocol, value, place })
}

/** Whether a signature is an envelope, which no provider made. */
export function isEnvelope(content: string): boolean {
  return content.startsWith(ENVELOPE_PREFIX)
}

/** Whether a body may hold an envelope: none does where this is false. */
export function mayHoldEnvelope(body: ScannedObject): boolean {
  return body.hasStringFrom(ENVELOPE_BEGINNING)
}

/** Opens an envelope; without one, the content is a proof of the wire itself. */
export function open(content: string, wire: ConversionProtocol): Enclosed {
  const own: Enclosed = { proof: { protocol: wire, value: content } }
  if (!isEnvelope(content)) return own
  if (content === UNSIGNED_THOUGHT) return {}
  const enclosed = parseRecord(Buffer.from(content.slice(ENVELOPE_PREFIX.length), 'base64url').toString())
  const protocol = enclosed?.['protocol']
  if (!CONVERSATIONS.has(protocol) || protocol === wire) return own
  const from = protocol as ConversionProtocol
  const proof = enclosed?.['proof']
  const signs = enclosed?.['signs']
  const place = enclosed?.['place'] === undefined ? {} : { place: enclosed['place'] }
  if (typeof proof === 'string')
    return {
      proof: { protocol: from, value: proof, ...((signs === 'call' || signs === 'text') && { signs }) },
      ...place,
    }
  const value = asRecord(enclosed?.['value'])
  return value ? { opaque: { kind: 'opaque', protocol: from, value }, ...place } : own
}

function seal(content: object): string {
  return ENVELOPE_PREFIX + Buffer.from(JSON.stringify(content)).toString('base64url')
}
