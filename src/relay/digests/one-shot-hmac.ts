import { hash } from 'node:crypto'

/** Block size of SHA-256, in bytes. */
const BLOCK_BYTES = 64

/** HMAC-SHA-256 by two hashes. Within a call, an `Hmac` object of Node costs several times as much as the hashes. */
export class OneShotHmac {
  readonly #inner: Buffer
  readonly #outer: Buffer

  /** `key`: at most 64 bytes. */
  constructor(key: Buffer) {
    this.#inner = padded(key, 0x36)
    this.#outer = padded(key, 0x5c)
  }

  /** The HMAC of these parts, one after the other, in hex digits. */
  hex(parts: readonly Buffer[]): string {
    const inner = hash('sha256', Buffer.concat([this.#inner, ...parts]), 'buffer')
    return hash('sha256', Buffer.concat([this.#outer, inner]), 'hex')
  }
}

function padded(key: Buffer, pad: number): Buffer {
  if (key.length > BLOCK_BYTES)
    throw new Error(`a key of ${key.length} bytes; at most ${BLOCK_BYTES} are expected`)
  return Buffer.alloc(BLOCK_BYTES, pad).map((byte, index) => byte ^ (key[index] ?? 0)) as Buffer
}
