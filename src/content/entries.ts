import { createCipheriv, createDecipheriv, hash, randomBytes } from 'node:crypto'
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'

/** A call's content as it is stored: encrypted, with the facts that are known without decrypting it. */
export interface ContentEntry {
  readonly id: string
  readonly userId: number
  readonly tokenId: number
  readonly startedMs: number
  readonly expiresMs: number
  readonly what: string
  /** Size in bytes of all parts of the content together, before compression and encryption. */
  readonly bytes: number
  readonly sha256: string
  /** Sizes of the parts in bytes, as a JSON list. */
  readonly lengths: string
  /** Id of the key with which the content is encrypted. */
  readonly keyId: string
  /** The day, counted from 1970-01-01, on which the entry's file or partition is removed. */
  readonly dropDay: number
  /** URL of the bucket object that contains the encrypted content; empty if `sealed` contains it. */
  readonly object: string
  /** Position of the content in the object, and its length, in bytes. */
  readonly objectAt: number
  readonly objectBytes: number
  readonly sealed: Buffer
}

/** An entry without its content. */
export type ContentEntryHead = Omit<ContentEntry, 'sealed'>

/**
 * A key that encrypts the content of calls of one user that began on the same day and are kept equally long.
 */
export interface DataKey {
  readonly id: string
  readonly key: Buffer
}

const NONCE_BYTES = 12
const TAG_BYTES = 16
const PARAMS = { params: { [constants.ZSTD_c_compressionLevel]: 1 } }

/** The SHA-256 of a content, in hexadecimal digits. */
export function digestOf(content: Uint8Array): string {
  return hash('sha256', content)
}

/**
 * Contents of fewer bytes are stored uncompressed, because compressing them would take longer than all other
 * work.
 */
const MIN_COMPRESSED_BYTES = 1_024

/** Compresses a content, unless it is small or would not become smaller. */
export function compress(content: Uint8Array): Buffer {
  const compressed = content.length < MIN_COMPRESSED_BYTES ? undefined : zstdCompressSync(content, PARAMS)
  return compressed && compressed.length < content.length ? compressed : Buffer.from(content)
}

/**
 * Encrypts a compressed content with AES-256-GCM, bound to its call. The result consists of nonce, encrypted
 * text and authentication tag.
 */
export function sealContent({ id, key }: DataKey, callId: string, compressed: Buffer): Buffer {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  cipher.setAAD(Buffer.from(`${id}\n${callId}`))
  return Buffer.concat([nonce, cipher.update(compressed), cipher.final(), cipher.getAuthTag()])
}

/** Decrypts what `sealContent` made for this call. Throws if it was changed or belongs to another call. */
export function unsealContent({ id, key }: DataKey, callId: string, sealed: Uint8Array): Buffer {
  if (sealed.length < NONCE_BYTES + TAG_BYTES) throw new Error('the content is cut short')
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, NONCE_BYTES))
  decipher.setAAD(Buffer.from(`${id}\n${callId}`))
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES))
  return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()])
}

/**
 * Decompresses a content to its original size of `bytes`; a content that already has this size was not
 * compressed.
 */
export function decompress(compressed: Buffer, bytes: number): Buffer {
  if (compressed.length === bytes) return compressed
  return zstdDecompressSync(compressed, { maxOutputLength: bytes })
}
