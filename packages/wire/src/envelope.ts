import { type ConversionProtocol, protocolsWith } from './protocols.ts'
import type { OpaquePart, Proof } from './conversation.ts'
import { asRecord, parseRecord } from './json/record.ts'
import type { ScannedObject } from './json/scanned-object.ts'

/**
 * Prefix of an envelope: a value in place of a signature, made by the gateway. An envelope carries data that
 * a provider of another dialect wants back unchanged.
 */
export const ENVELOPE_PREFIX = 'sluice-1.'
/** How a JSON string with an envelope begins. */
const ENVELOPE_BEGINNING = Buffer.from(`"${ENVELOPE_PREFIX}`)

const CONVERSATIONS: ReadonlySet<unknown> = new Set(protocolsWith(({ isConversation }) => isConversation))

/** Content of an envelope: the proof of a thought, if it has one, or an opaque part of another dialect. */
export type EnvelopeContent = ({ readonly proof?: Proof } | { readonly opaque: OpaquePart }) & {
  /** Position of the thought, for dialects that have no other place for it. */
  readonly place?: unknown
}

/** Envelope for a thought without a signature, for clients that discard thoughts without one. */
export const UNSIGNED_THOUGHT: string = seal({ thought: 'unsigned' })

/** Used in place of the provider's index of a web page, if another provider found the page. */
export const FOREIGN_PAGE: string = seal({ page: 'foreign' })

/** Renders a proof for a dialect: a proof of that dialect unchanged, any other in an envelope. */
export function sealProof(
  { protocol, value, signs }: Proof,
  wire: ConversionProtocol,
  place?: object,
): string {
  return protocol === wire ? value : seal({ protocol, proof: value, signs, place })
}

/** Renders an opaque part of another dialect in an envelope. */
export function sealOpaque(
  { protocol, value }: Pick<OpaquePart, 'protocol' | 'value'>,
  place?: object,
): string {
  return seal({ protocol, value, place })
}

/** Reports whether a signature is an envelope made by the gateway. */
export function isEnvelope(content: string): boolean {
  return content.startsWith(ENVELOPE_PREFIX)
}

/** Reports whether a body may contain an envelope; if false, it certainly contains none. */
export function mayHoldEnvelope(body: ScannedObject): boolean {
  return body.hasStringFrom(ENVELOPE_BEGINNING)
}

/** Opens an envelope. Content that is not an envelope is taken for a proof of the dialect `wire` itself. */
export function openEnvelope(content: string, wire: ConversionProtocol): EnvelopeContent {
  const own: EnvelopeContent = { proof: { protocol: wire, value: content } }
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

/**
 * Recognizes the opaque parts that are signed or encrypted thoughts; undefined for dialects that have none.
 */
const SIGNED: Readonly<
  Record<ConversionProtocol, ((block: Readonly<Record<string, unknown>>) => boolean) | undefined>
> = {
  chat: undefined,
  messages: ({ type }) => type === 'redacted_thinking',
  responses: undefined,
  gemini: undefined,
  converse: ({ reasoningContent }) => reasoningContent !== undefined,
}

/** Reports whether a provider wants an opaque part back unchanged, for example an encrypted thought. */
export function isSignedOpaque({ protocol, value }: Pick<OpaquePart, 'protocol' | 'value'>): boolean {
  return SIGNED[protocol]?.(asRecord(value) ?? {}) ?? false
}
