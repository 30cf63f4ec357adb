import { protocolsThat } from '../protocols.ts'
import type { OpaquePart, Proof, ThinkingPart } from '../conversation.ts'
import { asRecord, parseRecord } from '../json/record.ts'

/** Thought with its signature. */
type SignedThought = ThinkingPart & { readonly proof: Proof }

/** Element of a reply: a thought that its model signed, or the position and length of a text. */
export type SignedSlot =
  | SignedThought
  | OpaquePart
  /** `length` in UTF-16 code units. */
  | { readonly kind: 'said'; readonly length: number }

/** Signed parts at one anchor of a reply. An anchor is a tool call, or the text of a reply without calls. */
export interface SignedRun {
  /** Slots between the previous call and this one; for a reply without calls, all slots. */
  readonly before: readonly SignedSlot[]
  /** Slots after the last call. */
  readonly after: readonly SignedSlot[]
}

/** Dialects whose providers sign parts of their replies. */
export const SIGNING_DIALECTS: ReadonlySet<unknown> = new Set(protocolsThat(({ isSigned }) => isSigned))

/** Version of the text format; texts of other versions are not read. */
const VERSION = 1

/** Renders a run as text. */
export function signedRunText({ before, after }: SignedRun): string {
  return JSON.stringify({ version: VERSION, before, after })
}

/** Reads the text of a run; undefined for any other text. */
export function readSignedRun(text: string): SignedRun | undefined {
  const { version, before, after } = parseRecord(text) ?? {}
  if (version !== VERSION || !areSlots(before) || !areSlots(after)) return undefined
  return { before, after }
}

function areSlots(value: unknown): value is readonly SignedSlot[] {
  return Array.isArray(value) && value.every(isSlot)
}

function isSlot(value: unknown): boolean {
  const slot = asRecord(value)
  switch (slot?.['kind']) {
    case 'said':
      return Number.isSafeInteger(slot['length'])
    case 'thinking': {
      const proof = asRecord(slot['proof'])
      return (
        typeof slot['text'] === 'string' &&
        SIGNING_DIALECTS.has(proof?.['protocol']) &&
        typeof proof?.['value'] === 'string'
      )
    }
    case 'opaque':
      return SIGNING_DIALECTS.has(slot['protocol']) && asRecord(slot['value']) !== undefined
    default:
      return false
  }
}
