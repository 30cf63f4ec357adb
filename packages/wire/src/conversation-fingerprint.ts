import { hash, type KeyObject } from 'node:crypto'
import { type ConversationComparisonRules, DigestWalk, bytePartsAt } from './conversation-walk.ts'
import { gmacOf } from './gmac.ts'
import type { ScannedObject } from './json/scanned-object.ts'

/** Number of characters of a digest, which are 60 bits. */
const CHARACTERS = 10

/**
 * Short digests of the parts of a conversation, without cache marks and billing lines. A digest is computed
 * when its function is called.
 */
export interface ConversationFingerprint {
  readonly turns: number
  tools(): string
  /** Digest of the system prompt, with the turns at the beginning that contain instructions. */
  system(): string
  /** Digest of the turns up to this one. */
  messages(turn: number): string
}

/** Returns the digests of a conversation. `key` is a secret of 32 bytes. */
export function conversationFingerprint(
  scan: ScannedObject,
  form: ConversationComparisonRules,
  key: KeyObject,
): ConversationFingerprint {
  const { tools, system, turns, ends } = new DigestWalk(scan, form, '').parts()
  // The input of the hash may be a GMAC, which must not be stored itself.
  const digest = (offsets: readonly number[], count?: number): string =>
    hash('sha256', gmacOf(bytePartsAt(scan.bytes, offsets, count), key), 'base64url').slice(0, CHARACTERS)
  return {
    turns: ends.length,
    tools: () => digest(tools.offsets),
    system: () => digest(system.offsets),
    messages: (turn) => digest(turns.offsets, ends[turn - 1] ?? 0),
  }
}
