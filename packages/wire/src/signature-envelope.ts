import { type ConversionProtocol, protocolsWithProperty } from './protocols.ts'
import type { OpaquePart, ProviderSignature } from './conversation.ts'
import { asRecord, parseRecord } from './json/record.ts'
import type { ScannedObject } from './json/scanned-object.ts'

/**
 * Prefix of an envelope: a text that the gateway puts in the place of a signature. It encloses data of
 * another protocol, which the provider of this protocol wants back unchanged.
 */
export const SIGNATURE_ENVELOPE_PREFIX = 'sluice-1.'
/** Maximum characters of a reply's signed parts (such as reasoning); longer ones are neither gathered nor stored. */
export const MAX_SIGNED_CHARACTERS = 2 * 1024 * 1024
/** The beginning of every envelope as a JSON string. */
const ENVELOPE_BEGINNING = Buffer.from(`"${SIGNATURE_ENVELOPE_PREFIX}`)

const CONVERSATIONS: ReadonlySet<unknown> = new Set(
  protocolsWithProperty(({ isConversation }) => isConversation),
)

/**
 * Content of an envelope: a provider's signature of a thought, or a part that only the provider's protocol can
 * express.
 */
export type SignatureEnvelopeContent = (
  | { readonly proof?: ProviderSignature }
  | { readonly opaque: OpaquePart }
) & {
  /** Position of the thought in the reply, in protocols that do not state it elsewhere. */
  readonly place?: unknown
}

/**
 * Envelope that stands for the missing signature of a thought. Clients of responses discard thoughts without a
 * signature, and messages upstreams refuse them, so that they must be recognized when they come back.
 */
export const UNSIGNED_THOUGHT_ENVELOPE: string = seal({ thought: 'unsigned' })

/**
 * Sent to messages clients in place of a provider's encrypted data about a web page, if another provider
 * found the page.
 */
export const FOREIGN_PAGE_ENVELOPE: string = seal({ page: 'foreign' })

/**
 * Writes a signature for a protocol: its own signatures unchanged, those of other protocols in an envelope.
 */
export function sealSignature(
  { protocol, value, signs }: ProviderSignature,
  wire: ConversionProtocol,
  place?: object,
): string {
  return protocol === wire ? value : seal({ protocol, proof: value, signs, place })
}

/** Writes a part of another protocol as an envelope. */
export function sealOpaquePart(
  { protocol, value }: Pick<OpaquePart, 'protocol' | 'value'>,
  place?: object,
): string {
  return seal({ protocol, value, place })
}

/**
 * Whether clients of other protocols get this part in an envelope. What a chat upstream signed is only kept for
 * the channel that made it, because other chat servers refuse its members.
 */
export function isSealable({ protocol }: Pick<OpaquePart, 'protocol'>): boolean {
  return protocol !== 'chat'
}

/** Whether a signature is an envelope made by the gateway. */
export function isSignatureEnvelope(content: string): boolean {
  return content.startsWith(SIGNATURE_ENVELOPE_PREFIX)
}

/** Whether a body may contain an envelope. If this returns false, the body certainly contains none. */
export function mayHoldSignatureEnvelope(body: ScannedObject): boolean {
  return body.hasStringFrom(ENVELOPE_BEGINNING)
}

/** Opens an envelope. Content that is not an envelope counts as a signature of the protocol `wire`. */
export function openSignatureEnvelope(content: string, wire: ConversionProtocol): SignatureEnvelopeContent {
  const own: SignatureEnvelopeContent = { proof: { protocol: wire, value: content } }
  if (!isSignatureEnvelope(content)) return own
  if (content === UNSIGNED_THOUGHT_ENVELOPE) return {}
  const enclosed = parseRecord(
    Buffer.from(content.slice(SIGNATURE_ENVELOPE_PREFIX.length), 'base64url').toString(),
  )
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
  return SIGNATURE_ENVELOPE_PREFIX + Buffer.from(JSON.stringify(content)).toString('base64url')
}

/**
 * Tests whether an opaque part is signed or encrypted by its provider, by protocol; undefined for protocols
 * without such parts.
 */
const SIGNED: Readonly<
  Record<ConversionProtocol, ((block: Readonly<Record<string, unknown>>) => boolean) | undefined>
> = {
  chat: ({ reasoning_details }) => reasoning_details !== undefined,
  messages: ({ type }) => type === 'redacted_thinking',
  responses: undefined,
  gemini: undefined,
  converse: ({ reasoningContent }) => reasoningContent !== undefined,
}

/**
 * Whether the provider wants this opaque part back unchanged in the next request, for example encrypted
 * thoughts.
 */
export function isSignedOpaquePart({ protocol, value }: Pick<OpaquePart, 'protocol' | 'value'>): boolean {
  return SIGNED[protocol]?.(asRecord(value) ?? {}) ?? false
}
