import { createCipheriv, type KeyObject } from 'node:crypto'

const NO_NONCE = Buffer.alloc(12)

/**
 * GMAC of a text that consists of `parts`, with a secret key of 32 bytes. The nonce is always the same:
 * anyone who knows two results may be able to compute the key, so only a hash of a result may be stored.
 */
export function gmacOf(parts: readonly Buffer[], key: KeyObject): Buffer {
  const cipher = createCipheriv('aes-256-gcm', key, NO_NONCE)
  for (const part of parts) cipher.setAAD(part)
  cipher.final()
  return cipher.getAuthTag()
}
