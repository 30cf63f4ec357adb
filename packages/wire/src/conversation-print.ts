import { hash, type KeyObject } from 'node:crypto'
import { type ConversationForm, DigestWalk, partsAt } from './conversation-walk.ts'
import { gmacOf } from './gmac.ts'
import type { ScannedObject } from './json/scanned-object.ts'

/** Characters of a digest: 60 bits. */
const CHARACTERS = 10

/**
 * Short digests of the parts of a conversation, without cache directives and billing lines. Each is computed when it
 * is called.
 */
export interface ConversationPrint {
  readonly turns: number
  tools(): string
  /** The system prompt, with the turns at the beginning that are instructions. */
  system(): string
  /** The first turns, up to this one. */
  messages(turn: number): string
}

/** The print of a conversation. `key`: a secret of 32 bytes. */
export function conversationPrint(
  scan: ScannedObject,
  form: ConversationForm,
  key: KeyObject,
): ConversationPrint {
  const { tools, system, turns, ends } = new DigestWalk(scan, form, '').parts()
  // Hashed once more, because a GMAC must not be stored.
  const digest = (offsets: readonly number[], count?: number): string =>
    hash('sha256', gmacOf(partsAt(scan.bytes, offsets, count), key), 'base64url').slice(0, CHARACTERS)
  return {
    turns: ends.length,
    tools: () => digest(tools.offsets),
    system: () => digest(system.offsets),
    messages: (turn) => digest(turns.offsets, ends[turn - 1] ?? 0),
  }
}
