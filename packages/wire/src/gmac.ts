import { createCipheriv, type KeyObject } from 'node:crypto'

const NO_NONCE = Buffer.alloc(12)

/**
 * GMAC of these parts, joined, with a secret key of 32 bytes. All GMACs have the same nonce: whoever sees two
 * of them may be able to compute the key, so only a hash of a GMAC may be stored.
 */
export function gmacOf(parts: readonly Buffer[], key: KeyObject): Buffer {
  const cipher = createCipheriv('aes-256-gcm', key, NO_NONCE)
  for (const part of parts) cipher.setAAD(part)
  cipher.final()
  return cipher.getAuthTag()
}
