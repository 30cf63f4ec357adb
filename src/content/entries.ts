import { createCipheriv, createDecipheriv, hash, randomBytes } from 'node:crypto'
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'

/** A call's content as it is stored: one encrypted text, and what is found without opening it. */
export interface ContentEntry {
  readonly id: string
  readonly userId: number
  readonly tokenId: number
  readonly startedMs: number
  readonly expiresMs: number
  readonly what: string
  /** Bytes of the parts in all. */
  readonly bytes: number
  readonly sha256: string
  /** Lengths of the parts, as JSON. */
  readonly lengths: string
  /** Id of the data key. */
  readonly keyId: string
  /** Day since 1970 on which the file or partition of the entry is removed. */
  readonly dropDay: number
  /** URL of the object in which the encrypted content is; empty if it is here. */
  readonly object: string
  /** Where it begins in the object, and its length. */
  readonly objectAt: number
  readonly objectBytes: number
  readonly sealed: Buffer
}

/** An entry without its content. */
export type EntryHead = Omit<ContentEntry, 'sealed'>

/** A data key of one user, day and last day of retention. */
export interface DataKey {
  readonly id: string
  readonly key: Buffer
}

const NONCE_BYTES = 12
const TAG_BYTES = 16
const PARAMS = { params: { [constants.ZSTD_c_compressionLevel]: 1 } }

/** The digest of a content, in hex. */
export function digestOf(content: Uint8Array): string {
  return hash('sha256', content)
}

/** Contents below this size stay as they are: compressing them would take longer than all else. */
const MIN_COMPRESSED_BYTES = 1_024

/** Compresses a content, if that makes it smaller. */
export function compress(content: Uint8Array): Buffer {
  const compressed = content.length < MIN_COMPRESSED_BYTES ? undefined : zstdCompressSync(content, PARAMS)
  return compressed && compressed.length < content.length ? compressed : Buffer.from(content)
}

/** Encrypts a compressed content with a data key, for one call: AES-256-GCM of nonce, text and tag. */
export function sealContent({ id, key }: DataKey, callId: string, compressed: Buffer): Buffer {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  cipher.setAAD(Buffer.from(`${id}\n${callId}`))
  return Buffer.concat([nonce, cipher.update(compressed), cipher.final(), cipher.getAuthTag()])
}

/** Decrypts what `sealContent` made for this call. Throws if it was changed or moved. */
export function unsealContent({ id, key }: DataKey, callId: string, sealed: Uint8Array): Buffer {
  if (sealed.length < NONCE_BYTES + TAG_BYTES) throw new Error('the content is cut short')
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, NONCE_BYTES))
  decipher.setAAD(Buffer.from(`${id}\n${callId}`))
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES))
  return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()])
}

/** Decompresses a content of this many bytes; one of this size was not compressed. */
export function decompress(compressed: Buffer, bytes: number): Buffer {
  if (compressed.length === bytes) return compressed
  return zstdDecompressSync(compressed, { maxOutputLength: bytes })
}
