import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { OBJECT_BYTES, OBJECT_PART_BYTES } from '../domain/kept.ts'
import { GatewayError } from '../errors.ts'

/**
 * Where large contents are, apart from the database: a folder, or a bucket. It is not trusted: what it gets is encrypted,
 * and what it returns is checked. Rejects if it cannot be reached. Names have letters, digits, `-` and one `/`.
 */
export interface ObjectPlace {
  /**
   * Called before a content is put. `isFirst` checks that the database has no contents in objects. Rejects if it has some,
   * and this is not their place.
   */
  begin(isFirst: () => Promise<boolean>): Promise<void>
  /** Whether there is room for contents that may be refused. */
  hasRoom(): Promise<boolean>
  /** Resolves once the object is durable. */
  put(name: string, bytes: Buffer): Promise<void>
  /** Reads bytes of an object, fewer at its end. Resolves to undefined if there is no such object. */
  get(name: string, range: ObjectRange): Promise<Buffer | undefined>
  /** Removing an object that does not exist counts as success. */
  remove(name: string): Promise<void>
  close(): Promise<void>
}

/** Which bytes of an object are read. */
export interface ObjectRange {
  readonly at: number
  readonly length: number
}

/** The name of an object of a content. */
export function objectName(contentId: string, number: number): string {
  return `${contentId}/${number}`
}

const CIPHER = 'aes-256-gcm'
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16
/** Bytes of an encrypted part that is not the last one, and their number in an object. */
const SEALED_BYTES = OBJECT_PART_BYTES + TAG_BYTES
const PARTS_OF_OBJECT = OBJECT_BYTES / OBJECT_PART_BYTES
/** Length of a key as a text. */
export const OBJECT_KEY_LENGTH = 43

/**
 * Makes a key for one content. It is part of the encrypted row of its entry, so that nothing of the content can be read once
 * the row is gone, and the objects stay as they are when the secret is changed.
 */
export function newObjectKey(): string {
  return randomBytes(KEY_BYTES).toString('base64url')
}

/** Encrypts the bytes of an object, each part for its place in the content. */
export function sealObject(key: string, contentId: string, number: number, bytes: Uint8Array): Buffer {
  const sealed: Buffer[] = []
  for (let at = 0, part = number * PARTS_OF_OBJECT; at < bytes.length; at += OBJECT_PART_BYTES, part += 1) {
    const cipher = createCipheriv(CIPHER, Buffer.from(key, 'base64url'), nonceOf(part))
    cipher.setAAD(Buffer.from(contentId))
    sealed.push(
      cipher.update(bytes.subarray(at, at + OBJECT_PART_BYTES)),
      cipher.final(),
      cipher.getAuthTag(),
    )
  }
  return Buffer.concat(sealed)
}

/** A content of which parts are read. */
export interface SealedContent {
  readonly contentId: string
  readonly objectKey: string
}

/** Reads a part; undefined if it is gone, or is not that of this place. */
export async function readObjectPart(
  place: ObjectPlace,
  { contentId, objectKey }: SealedContent,
  part: number,
): Promise<Buffer | undefined> {
  const at = (part % PARTS_OF_OBJECT) * SEALED_BYTES
  const name = objectName(contentId, Math.floor(part / PARTS_OF_OBJECT))
  const sealed = await place.get(name, { at, length: SEALED_BYTES })
  return sealed && opened(objectKey, contentId, part, sealed)
}

/** Reads the parts of an object. Throws `not_found` where one is gone, or is not that of its place. */
export async function* readObject(
  place: ObjectPlace,
  { contentId, objectKey }: SealedContent,
  number: number,
): AsyncGenerator<Buffer, void, undefined> {
  const range = { at: 0, length: PARTS_OF_OBJECT * SEALED_BYTES }
  const sealed = (await place.get(objectName(contentId, number), range)) ?? Buffer.alloc(0)
  for (let at = 0, part = number * PARTS_OF_OBJECT; at < Math.max(1, sealed.length); part += 1) {
    const bytes = opened(objectKey, contentId, part, sealed.subarray(at, at + SEALED_BYTES))
    if (!bytes) throw new GatewayError('not_found', 'this content is not kept any more')
    yield bytes
    at += SEALED_BYTES
  }
}

function opened(key: string, contentId: string, part: number, sealed: Buffer): Buffer | undefined {
  if (sealed.length < TAG_BYTES) return undefined
  const end = sealed.length - TAG_BYTES
  try {
    const cipher = createDecipheriv(CIPHER, Buffer.from(key, 'base64url'), nonceOf(part))
    cipher.setAAD(Buffer.from(contentId))
    cipher.setAuthTag(sealed.subarray(end))
    const bytes = cipher.update(sealed.subarray(0, end))
    cipher.final()
    return bytes
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
