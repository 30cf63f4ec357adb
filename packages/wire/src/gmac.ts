import { createCipheriv, type KeyObject } from 'node:crypto'

const NO_NONCE = Buffer.alloc(12)

/**
 * GMAC of these parts, one after the other, under a secret key of 32 bytes. All have the same nonce: whoever sees two of
 * them may compute the key of the GMAC, so that only a hash of one may be stored.
 */
export function gmacOf(parts: readonly Buffer[], key: KeyObject): Buffer {
  const cipher = createCipheriv('aes-256-gcm', key, NO_NONCE)
  for (const part of parts) cipher.setAAD(part)
  cipher.final()
  return cipher.getAuthTag()
}
