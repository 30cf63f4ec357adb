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

/** Keys that are derived from one secret. */
export interface SecretKeys {
  /** Identifier of the secret, which is part of every encrypted value. */
  readonly keyId: string
  readonly encryptionKey: KeyObject
  /** Key of the HMACs by which API keys are looked up; also the source of keys that may change with the secret. */
  readonly ownLookupKey: KeyObject
  /** Key that signs messages between nodes. */
  readonly messageKey: KeyObject
  /**
   * Value stored in the database, by which a start detects that the secret is not the one that the database
   * was created with.
   */
  readonly check: string
  /** The values that `check` would have if the secret differed by white space at its end. */
  readonly spacedChecks: readonly string[]
}

/**
 * Keys derived from the operator's secret. They can be posted to a thread. They are key objects, because Node
 * checks keys given as bytes at every use: hashing takes seven times as long with them. While the secret is
 * changed, `settleSecrets` replaces the values in place.
 */
export interface Secrets extends SecretKeys {
  /**
   * Key of all other HMACs. It belongs to the database: it is derived from its first secret, and stored
   * encrypted once the secret was changed, because what these HMACs stand for is not known in plain text.
   */
  readonly lookupKey: KeyObject
  /** Keys of a second secret, with which values may be read too while the secret is changed. */
  readonly other?: SecretKeys | undefined
  /** `check` of the secret that replaces the other one; undefined if only one secret was given. */
  readonly newCheck?: string | undefined
}

/** The row that an encrypted value belongs to. The value cannot be decrypted for another row. */
export interface SealContext {
  readonly table: string
  readonly row: string | number
}

/** Minimum number of characters of a secret. */
export const MIN_SECRET_LENGTH = 16
const NONCE_BYTES = 12
const TAG_BYTES = 16
/** White space that files, editors and shells leave at the end of a secret. */
const SPACES = ['', '\n', '\r\n', '\r', ' ', '\t']

/**
 * Derives the keys of the secret, and those of the secret that will replace it, if there is one. Throws if a
 * secret is shorter than 16 characters.
 */
export function deriveSecrets(secret: string, next?: string): Secrets {
  const keys = keysOf(secret, 'GATEWAY_SECRET')
  const other = next === undefined || next === secret ? undefined : keysOf(next, 'GATEWAY_SECRET_NEW')
  return { ...keys, lookupKey: keys.ownLookupKey, other, newCheck: other?.check }
}

function keysOf(secret: string, name: string): SecretKeys {
  if (secret.length < MIN_SECRET_LENGTH) {
    throw new Error(
      `${name} has ${secret.length} characters; it needs at least ${MIN_SECRET_LENGTH} (openssl rand -hex 32 makes a good one)`,
    )
  }
  const derive = (purpose: string, bytes: number, of = secret): Buffer =>
    Buffer.from(hkdfSync('sha256', of, 'sluice', purpose, bytes))
  const bare = secret.trimEnd()
  const spaced = SPACES.map((space) => bare + space).filter((text) => text !== secret)
  return {
    keyId: derive('key id', 4).toString('hex'),
    encryptionKey: createSecretKey(derive('encryption', 32)),
    ownLookupKey: createSecretKey(derive('lookup', 32)),
    messageKey: createSecretKey(derive('node messages', 32)),
    check: derive('check', 16).toString('hex'),
    spacedChecks: spaced.map((text) => derive('check', 16, text).toString('hex')),
  }
}

/** Hashes an API key (without `sk-`) for its lookup: HMAC-SHA256, in hex. */
export function hashKey(secrets: SecretKeys, key: string): string {
  return createHmac('sha256', secrets.ownLookupKey).update('api key\n').update(key).digest('hex')
}

/** Number of last characters of a key that find it. */
export const KEY_END_LENGTH = 4

/** The HMAC that finds a key by its last characters, `end`. */
export function hashKeyEnd(secrets: Secrets, end: string): string {
  return hmacOf(secrets, 'key end', end)
}

/** The HMAC of the last characters of a key. */
export function keyEndHash(secrets: Secrets, key: string): string {
  return hashKeyEnd(secrets, key.slice(-KEY_END_LENGTH))
}

/** The hashes under which an API key may be stored: while the secret is changed, that of the other secret too. */
export function keyHashes(secrets: Secrets, key: string): readonly string[] {
  const hash = hashKey(secrets, key)
  return secrets.other ? [hash, hashKey(secrets.other, key)] : [hash]
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
    | 'mcp session'
    | 'alert receiver'
    | 'audit'
    | 'model list'
    | 'version'
    | 'answer'
    | 'key end'
    | 'invitation',
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
export function databaseMessageKey(secrets: SecretKeys): Buffer {
  return createHmac('sha256', secrets.messageKey).update('database').digest()
}

/**
 * Key that authenticates the hashes of prompts that the gateway remembers. Gateways with different secrets
 * cannot use each other's hashes.
 */
export function promptKey(secrets: Secrets): Buffer {
  return createHmac('sha256', secrets.ownLookupKey).update('prompts\n').digest()
}

/** Key for the placeholders with which guards replace values in prompts. */
export function guardKey(secrets: Secrets): Buffer {
  return createHmac('sha256', secrets.ownLookupKey).update('guards\n').digest()
}

/** Hashes a session's cookie value for its lookup; only the hash is stored. */
export function hashSession(secrets: Secrets, session: string): string {
  return createHmac('sha256', secrets.lookupKey).update('session\n').update(session).digest('hex')
}

/** The characters with which all values begin that were encrypted with a secret. */
export function sealPrefix({ keyId }: SecretKeys): string {
  return `v1.${keyId}.`
}

/** Encrypts a text or bytes with AES-256-GCM. Format: `v1.KEY_ID.BASE64URL(nonce, text, tag)`. */
export function seal(secrets: SecretKeys, plain: string | Uint8Array, place: SealContext): string {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', secrets.encryptionKey, nonce)
  cipher.setAAD(associatedData(secrets.keyId, place))
  const encrypted = typeof plain === 'string' ? cipher.update(plain, 'utf8') : cipher.update(plain)
  const bytes = Buffer.concat([nonce, encrypted, cipher.final(), cipher.getAuthTag()])
  return sealPrefix(secrets) + bytes.toString('base64url')
}

/**
 * Decrypts a result of `seal` for the same row. Throws if it was changed, moved to another row, or encrypted
 * with another secret; while the secret is changed, both secrets are accepted.
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
  const keys = [secrets, secrets.other].find((one) => one?.keyId === keyId)
  if (keyId === undefined || !keys) {
    throw new Error(
      `the sealed value of ${place.table} ${place.row} needs the secret ${keyId}, not ${secrets.keyId}`,
    )
  }
  const bytes = Buffer.from(text, 'base64url')
  if (bytes.length < NONCE_BYTES + TAG_BYTES) {
    throw new Error(`the sealed value of ${place.table} ${place.row} is cut short`)
  }
  const decipher = createDecipheriv('aes-256-gcm', keys.encryptionKey, bytes.subarray(0, NONCE_BYTES))
  decipher.setAAD(associatedData(keyId, place))
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
  return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()])
}

function associatedData(keyId: string, place: SealContext): Buffer {
  return Buffer.from(`${keyId}\n${place.table}\n${place.row}`, 'utf8')
}

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const LENGTH = 48

/**
 * Generates an API key without the prefix `sk-`: 48 random letters and digits, which is more than 285 bits.
 */
export function generateKey(): string {
  return Array.from({ length: LENGTH }, () => BASE62[randomInt(BASE62.length)]).join('')
}
