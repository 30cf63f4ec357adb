import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
  randomInt,
} from 'node:crypto'

/**
 * Keys derived from the operator's secret. They can be posted to a thread. They are key objects, because Node
 * checks keys given as bytes at every use: hashing takes seven times as long with them.
 */
export interface Secrets {
  /** Identifier of the secret, which is part of every encrypted value. */
  readonly keyId: string
  readonly encryptionKey: KeyObject
  readonly lookupKey: KeyObject
  /** Key that signs messages between nodes. */
  readonly messageKey: KeyObject
  /**
   * Value stored in the database, by which a start detects that the secret is not the one that the database
   * was created with.
   */
  readonly check: string
}

/** The row that an encrypted value belongs to. The value cannot be decrypted for another row. */
export interface SealContext {
  readonly table: string
  readonly row: string | number
}

const MIN_SECRET_LENGTH = 16
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Derives the keys. Throws if the secret is shorter than 16 characters. */
export function deriveSecrets(secret: string): Secrets {
  if (secret.length < MIN_SECRET_LENGTH) {
    throw new Error(
      `GATEWAY_SECRET has ${secret.length} characters; it needs at least ${MIN_SECRET_LENGTH} (openssl rand -hex 32 makes a good one)`,
    )
  }
  const derive = (purpose: string, bytes: number): Buffer =>
    Buffer.from(hkdfSync('sha256', secret, 'sluice', purpose, bytes))
  return {
    keyId: derive('key id', 4).toString('hex'),
    encryptionKey: createSecretKey(derive('encryption', 32)),
    lookupKey: createSecretKey(derive('lookup', 32)),
    messageKey: createSecretKey(derive('node messages', 32)),
    check: derive('check', 16).toString('hex'),
  }
}

/** Hashes an API key (without `sk-`) for its lookup: HMAC-SHA256, in hex. */
export function hashKey(secrets: Secrets, key: string): string {
  return createHmac('sha256', secrets.lookupKey).update('api key\n').update(key).digest('hex')
}

/**
 * Computes an HMAC of a text, so that texts can be compared without being stored. The same text has different
 * HMACs for different purposes.
 */
export function hmacOf(
  secrets: Secrets,
  purpose:
    | 'upstream key'
    | 'limited key'
    | 'reasoning'
    | 'signature'
    | 'state'
    | 'alert receiver'
    | 'audit'
    | 'model list'
    | 'version'
    | 'answer',
  text: string,
): string {
  return createHmac('sha256', secrets.lookupKey).update(`${purpose}\n`).update(text).digest('base64url')
}

/** Hashes an access token for its lookup; only the hash is stored. */
export function hashAccessToken(secrets: Secrets, accessToken: string): string {
  return createHmac('sha256', secrets.lookupKey).update('access token\n').update(accessToken).digest('hex')
}

/**
 * Text that marks requests to upstreams, by which the gateway detects a request that comes back to itself.
 * Reveals nothing about the secret.
 */
export function loopMarker(secrets: Secrets): string {
  return createHmac('sha256', secrets.lookupKey).update('mark\n').digest('base64url')
}

/**
 * Name of this gateway's cluster on shared servers such as Redis, different from the names of other gateways
 * there.
 */
export function namespaceOf(secrets: Secrets, database: string): string {
  const digest = createHmac('sha256', secrets.lookupKey).update(`namespace\n${database}`).digest('hex')
  return `sluice:${digest.slice(0, 16)}`
}

/** Key with which the shared database signs its messages to nodes. It is stored in that database. */
export function databaseMessageKey(secrets: Secrets): Buffer {
  return createHmac('sha256', secrets.messageKey).update('database').digest()
}

/**
 * Key that authenticates the hashes of prompts that the gateway remembers. Gateways with different secrets
 * cannot use each other's hashes.
 */
export function promptKey(secrets: Secrets): Buffer {
  return createHmac('sha256', secrets.lookupKey).update('prompts\n').digest()
}

/** Key for the placeholders with which guards replace values in prompts. */
export function guardKey(secrets: Secrets): Buffer {
  return createHmac('sha256', secrets.lookupKey).update('guards\n').digest()
}

/** Hashes a session's cookie value for its lookup; only the hash is stored. */
export function hashSession(secrets: Secrets, session: string): string {
  return createHmac('sha256', secrets.lookupKey).update('session\n').update(session).digest('hex')
}

/** Encrypts a text or bytes with AES-256-GCM. Format: `v1.KEY_ID.BASE64URL(nonce, text, tag)`. */
export function seal(secrets: Secrets, plain: string | Uint8Array, place: SealContext): string {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', secrets.encryptionKey, nonce)
  cipher.setAAD(associatedData(secrets.keyId, place))
  const encrypted = typeof plain === 'string' ? cipher.update(plain, 'utf8') : cipher.update(plain)
  const bytes = Buffer.concat([nonce, encrypted, cipher.final(), cipher.getAuthTag()])
  return `v1.${secrets.keyId}.${bytes.toString('base64url')}`
}

/**
 * Decrypts a result of `seal` for the same row. Throws if it was changed, moved to another row, or encrypted
 * with another secret.
 */
export function unseal(secrets: Secrets, sealed: string, place: SealContext): string {
  return unsealBytes(secrets, sealed, place).toString('utf8')
}

/** Decrypts bytes by the same rules as `unseal`. */
export function unsealBytes(secrets: Secrets, sealed: string, place: SealContext): Buffer {
  const [version, keyId, text, ...rest] = sealed.split('.')
  if (version !== 'v1' || text === undefined || rest.length > 0) {
    throw new Error(`the sealed value of ${place.table} ${place.row} is not in a form that is known here`)
  }
  if (keyId !== secrets.keyId) {
    throw new Error(
      `the sealed value of ${place.table} ${place.row} needs the secret ${keyId}, not ${secrets.keyId}`,
    )
  }
  const bytes = Buffer.from(text, 'base64url')
  if (bytes.length < NONCE_BYTES + TAG_BYTES) {
    throw new Error(`the sealed value of ${place.table} ${place.row} is cut short`)
  }
  const decipher = createDecipheriv('aes-256-gcm', secrets.encryptionKey, bytes.subarray(0, NONCE_BYTES))
  decipher.setAAD(associatedData(keyId, place))
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
  return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()])
}

function associatedData(keyId: string, place: SealContext): Buffer {
  return Buffer.from(`${keyId}\n${place.table}\n${place.row}`, 'utf8')
}

/** Throws a sentence for the operator if the stored check value belongs to a different secret. */
export function refuseOtherSecret(storedCheck: string | undefined, secrets: Secrets): void {
  if (storedCheck === secrets.check) return
  throw new Error(
    'this database was made with another secret, and its keys cannot be read with this one: set GATEWAY_SECRET to the ' +
      'secret that it was made with, or, if none was set, put the file "secret" of its data folder back',
  )
}

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const LENGTH = 48

/**
 * Generates an API key without the prefix `sk-`: 48 random letters and digits, which is more than 285 bits.
 */
export function generateKey(): string {
  return Array.from({ length: LENGTH }, () => BASE62[randomInt(BASE62.length)]).join('')
}
