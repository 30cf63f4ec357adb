import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

/**
 * Where large contents are, apart from the database: a folder, or a bucket. It is not trusted: what it gets is encrypted,
 * and what it returns is checked. Rejects if it cannot be reached. Names have letters, digits, `-` and one `/`.
 */
export interface ObjectPlace {
  /** Whether there is room for contents that may be refused. */
  hasRoom(): Promise<boolean>
  /** Resolves once the object is durable. */
  put(name: string, bytes: Buffer): Promise<void>
  /** Resolves to undefined if there is no such object, or if it is larger than `maxBytes`. */
  get(name: string, maxBytes: number): Promise<Buffer | undefined>
  /** Removing an object that does not exist counts as success. */
  remove(name: string): Promise<void>
  close(): Promise<void>
}

/** The name of the object with a part of a content. */
export function objectName(contentId: string, part: number): string {
  return `${contentId}/${part}`
}

const CIPHER = 'aes-256-gcm'
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16
/** Bytes that encryption adds to a part. */
export const OBJECT_SEAL_BYTES = TAG_BYTES
/** Length of a key as a text. */
export const OBJECT_KEY_LENGTH = 43

/**
 * Makes a key for one content. It is part of the encrypted row of its entry, so that nothing of the content can be read once
 * the row is gone, and the objects stay as they are when the secret is changed.
 */
export function newObjectKey(): string {
  return randomBytes(KEY_BYTES).toString('base64url')
}

/** Encrypts a part for its place in a content. */
export function sealObject(key: string, contentId: string, part: number, bytes: Uint8Array): Buffer {
  const cipher = createCipheriv(CIPHER, Buffer.from(key, 'base64url'), nonceOf(part))
  cipher.setAAD(Buffer.from(contentId))
  return Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()])
}

/** Decrypts a part; undefined if it is not that of this place. */
export function openObject(key: string, contentId: string, part: number, sealed: Buffer): Buffer | undefined {
  if (sealed.length < TAG_BYTES) return undefined
  const end = sealed.length - TAG_BYTES
  try {
    const cipher = createDecipheriv(CIPHER, Buffer.from(key, 'base64url'), nonceOf(part))
    cipher.setAAD(Buffer.from(contentId))
    cipher.setAuthTag(sealed.subarray(end))
    return Buffer.concat([cipher.update(sealed.subarray(0, end)), cipher.final()])
  } catch {
    return undefined
  }
}

/** A key encrypts each part once, so the number of the part is a nonce. */
function nonceOf(part: number): Buffer {
  const nonce = Buffer.alloc(NONCE_BYTES)
  nonce.writeUInt32BE(part, NONCE_BYTES - 4)
  return nonce
}
