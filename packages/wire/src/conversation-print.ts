import { createCipheriv, hash, type KeyObject } from 'node:crypto'
import { type ConversationForm, DigestWalk } from './conversation-walk.ts'
import type { ScannedObject } from './json/scanned-object.ts'

/** Characters of a digest: 60 bits. */
const CHARACTERS = 10
const NO_NONCE = Buffer.alloc(12)

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
  const digest = (offsets: readonly number[], count = offsets.length): string => {
    const cipher = createCipheriv('aes-256-gcm', key, NO_NONCE)
    for (let i = 0; i < count; i += 2) cipher.setAAD(scan.bytes.subarray(offsets[i], offsets[i + 1]))
    cipher.final()
    // Hashed once more, because a GMAC must not be stored.
    return hash('sha256', cipher.getAuthTag(), 'base64url').slice(0, CHARACTERS)
  }
  return {
    turns: ends.length,
    tools: () => digest(tools.offsets),
    system: () => digest(system.offsets),
    messages: (turn) => digest(turns.offsets, ends[turn - 1] ?? 0),
  }
}
