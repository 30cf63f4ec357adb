import type { ConversionProtocol } from '../protocols.ts'
import type { OpaquePart, Part, ProviderSignature, ThinkingPart } from '../conversation.ts'
import {
  type SignatureEnvelopeContent,
  isSignatureEnvelope,
  isSignedOpaquePart,
  MAX_SIGNED_CHARACTERS,
  openSignatureEnvelope,
  sealOpaquePart,
  sealSignature,
} from '../signature-envelope.ts'
import type { Fields } from '../field.ts'
import { asRecord } from '../json/record.ts'

/**
 * The protocols whose encrypted reasoning is sent to chat clients in `reasoning_details`. Signatures of other
 * protocols are sent in other members.
 */
const IS_TOLD: Readonly<Record<ConversionProtocol, boolean>> = {
  chat: false,
  messages: false,
  responses: true,
  gemini: false,
  converse: true,
}

/**
 * The position of a signed thought in an assistant message: its range in `reasoning_content`, in code points,
 * and the number of tool calls before it.
 */
export interface ThoughtPosition {
  readonly from: number
  readonly length: number
  readonly calls: number
}

/**
 * Writes the signature of a thought as an element of `reasoning_details`. Undefined if the signatures of its
 * protocol are not sent there.
 */
export function writeReasoningDetail(
  signed: ProviderSignature | OpaquePart,
  place: ThoughtPosition,
  index: number,
): object | undefined {
  if (!IS_TOLD[signed.protocol]) return undefined
  if ('kind' in signed && !isSignedOpaquePart(signed)) return undefined
  const data = 'kind' in signed ? sealOpaquePart(signed, place) : sealSignature(signed, 'chat', place)
  return { type: 'reasoning.encrypted', data, index }
}

/**
 * The thoughts of an assistant message: those before its content, and those before each tool call, by the
 * index of the call.
 */
export interface MessageThoughts {
  readonly first: readonly Part[]
  before(call: number): readonly Part[]
  /** The thoughts after the last tool call. `calls` is the number of tool calls in the message. */
  after(calls: number): readonly Part[]
}

/** Splits `reasoning_content` into thoughts, each with its signature from `reasoning_details`. */
export function readThoughts(text: string, details: readonly unknown[]): MessageThoughts {
  const characters = Array.from(text)
  const parts: { readonly part: Part; readonly calls: number }[] = []
  let end = 0
  const unsigned = (to: number): void => {
    const segment = characters.slice(end, to).join('')
    if (segment !== '') parts.push({ part: { kind: 'thinking', text: segment }, calls: 0 })
    end = Math.max(end, to)
  }
  for (const detail of details) {
    const enclosed = enclosedIn(detail)
    if (!enclosed) continue
    const { from = end, length = 0, calls = 0 } = placeOf(enclosed)
    if ('opaque' in enclosed) parts.push({ part: enclosed.opaque, calls })
    // The gateway's own ranges do not overlap. Forged ones would copy the same text any number of times.
    else if (enclosed.proof && from >= end) {
      unsigned(from)
      const segment = characters.slice(from, from + length)
      end = Math.max(end, from + segment.length)
      const thought: ThinkingPart = { kind: 'thinking', text: segment.join(''), proof: enclosed.proof }
      // If the client has changed the text, the signature is not valid any more, and the thought is left out.
      if (segment.length === length || enclosed.proof.protocol === 'responses')
        parts.push({ part: thought, calls })
    }
  }
  unsigned(characters.length)
  const byCalls = Map.groupBy(parts, ({ calls }) => calls)
  const at = (call: number): readonly Part[] => byCalls.get(call)?.map(({ part }) => part) ?? []
  return {
    first: at(0),
    before: (call) => (call === 0 ? [] : at(call)),
    after: (count) => parts.filter(({ calls }) => calls > 0 && calls >= count).map(({ part }) => part),
  }
}

/** Whether the gateway created this element of `reasoning_details`. */
export function isDetailOfGateway(detail: unknown): boolean {
  const data = asRecord(detail)?.['data']
  return typeof data === 'string' && isSignatureEnvelope(data)
}

function enclosedIn(detail: unknown): SignatureEnvelopeContent | undefined {
  return isDetailOfGateway(detail)
    ? openSignatureEnvelope(String((detail as Fields)['data']), 'chat')
    : undefined
}

function placeOf({ place }: SignatureEnvelopeContent): Partial<ThoughtPosition> {
  const numbers = Object.entries(asRecord(place) ?? {}).filter(([, value]) => Number.isSafeInteger(value))
  return Object.fromEntries(numbers)
}

/**
 * The members of a tool call that contain its signature, as Google's chat endpoint sends and expects them.
 */
export function googleSignatureMembers(signature: string | undefined): {
  readonly extra_content?: { readonly google: { readonly thought_signature: string } }
} {
  return signature === undefined ? {} : { extra_content: { google: { thought_signature: signature } } }
}

/**
 * Reads the signature of a tool call, and returns it as a part to put before the call. Returns an empty list
 * if the call has none.
 */
export function readCallSignature(call: Fields): ThinkingPart[] {
  const value = asRecord(asRecord(call['extra_content'])?.['google'])?.['thought_signature']
  if (typeof value !== 'string' || value === '') return []
  return [{ kind: 'thinking', text: '', proof: { protocol: 'gemini', value, signs: 'call' } }]
}

/** Whether the servers of a model accept signatures in its calls. Others may refuse the unknown member. */
export function takesCallSignatures(model: string): boolean {
  return /gemini/i.test(model)
}

/** An element of `reasoning_details`: its members by their names. */
type Detail = Map<string, unknown>

/** The elements of `reasoning_details` of one reply, whole or in deltas, as an upstream wants them back. */
export class SignedDetails {
  readonly #details: Detail[] = []
  /** The elements whose texts later deltas may continue, by type and index. */
  readonly #growing: ReadonlyMap<unknown, Map<unknown, Detail>> = new Map([
    ['reasoning.text', new Map()],
    ['reasoning.summary', new Map()],
  ])
  #size = 0

  /** Adds the elements of a message or a delta. A delta may continue a text of an earlier one. */
  add(details: unknown): void {
    if (!Array.isArray(details)) return
    const earlier = this.#details.length
    for (const value of details) {
      const piece = asRecord(value)
      if (!piece || this.#size > MAX_SIGNED_CHARACTERS) continue
      const growing = this.#growing.get(piece['type'])
      const known = growing?.get(piece['index'])
      if (known) this.#join(known, piece)
      else this.#begin(piece)
      if (known?.get('signature')) growing?.delete(piece['index'])
    }
    for (const detail of this.#details.slice(earlier))
      if (!detail.get('signature')) this.#growing.get(detail.get('type'))?.set(detail.get('index'), detail)
  }

  /** The elements as a part; undefined if they are too long, or if none is signed: the upstream then needs none back. */
  get part(): OpaquePart | undefined {
    const isSigned = this.#details.some((detail) => detail.get('signature') || detail.get('data'))
    if (!isSigned || this.#size > MAX_SIGNED_CHARACTERS) return undefined
    const reasoning_details = this.#details.map((detail) => Object.fromEntries(detail))
    return { kind: 'opaque', protocol: 'chat', value: { reasoning_details } }
  }

  #begin(piece: Fields): void {
    this.#details.push(new Map(Object.entries(piece)))
    this.#size += DETAIL + sizeOf(piece)
  }

  #join(known: Detail, piece: Fields): void {
    for (const [key, value] of Object.entries(piece)) {
      const before = known.get(key)
      const grows = GROWING.has(key) && typeof before === 'string' && typeof value === 'string'
      if (value === null || (value === before && !grows)) continue
      known.set(key, grows ? before + value : value)
      this.#size += sizeOf(value) + (before === undefined ? key.length : 0)
    }
  }
}

/** The elements of `reasoning_details` that a part holds, in the form of `SignedDetails`. */
export function detailsIn({ protocol, value }: OpaquePart): readonly unknown[] {
  const details = protocol === 'chat' ? asRecord(value)?.['reasoning_details'] : undefined
  return Array.isArray(details) ? details : []
}

/** The members of an element that arrive in pieces. */
const GROWING: ReadonlySet<string> = new Set(['text', 'summary'])

/** Estimated characters of an element in addition to its content. */
const DETAIL = 200

/** Characters of a value as JSON; infinite if it is too deep to be written. */
function sizeOf(value: unknown): number {
  try {
    return JSON.stringify(value).length
  } catch {
    return Infinity
  }
}

/**
 * Whether chat clients see a placeholder in `reasoning_content` instead of this signature. This is the case
 * for thoughts from upstreams with the messages protocol.
 */
export function isReplacedByPlaceholder({ protocol }: ProviderSignature): boolean {
  return protocol === 'messages'
}

/** Returns the signature if it signs the next tool call; undefined if it signs a thought or a text. */
export function callSignature({ protocol, signs, value }: ProviderSignature): string | undefined {
  return protocol === 'gemini' && signs === 'call' ? value : undefined
}
