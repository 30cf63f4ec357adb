import { hash, type KeyObject } from 'node:crypto'
import { type ConversationForm, DigestWalk, partsAt } from './conversation-walk.ts'
import { gmacOf } from './gmac.ts'
import type { ScannedObject } from './json/scanned-object.ts'

/** Length of a digest in characters; ten characters have 60 bits. */
const CHARACTERS = 10

/**
 * Short digests of the parts of a conversation, without cache directives and billing lines. Each is computed
 * when its method is called.
 */
export interface ConversationPrint {
  readonly turns: number
  tools(): string
  /** Digest of the system prompt, together with instruction turns at the beginning. */
  system(): string
  /** Digest of all turns up to and including this one; turns count from 1. */
  messages(turn: number): string
}

/** Returns the digests of a conversation. `key` is a secret of 32 bytes. */
export function conversationPrint(
  scan: ScannedObject,
  form: ConversationForm,
  key: KeyObject,
): ConversationPrint {
  const { tools, system, turns, ends } = new DigestWalk(scan, form, '').parts()
  // The GMAC is hashed once more, because a GMAC must not be stored.
  const digest = (offsets: readonly number[], count?: number): string =>
    hash('sha256', gmacOf(partsAt(scan.bytes, offsets, count), key), 'base64url').slice(0, CHARACTERS)
  return {
    turns: ends.length,
    tools: () => digest(tools.offsets),
    system: () => digest(system.offsets),
    messages: (turn) => digest(turns.offsets, ends[turn - 1] ?? 0),
  }
}
