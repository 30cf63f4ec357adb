import { createHmac, timingSafeEqual } from 'node:crypto'
import { databaseMessageKey, type SecretKeys, type Secrets } from './secrets.ts'

/**
 * Maximum size of a message in bytes, including its signature. This is the limit of PostgreSQL notifications.
 */
export const MAX_MESSAGE_BYTES = 7_999
/** Number of hexadecimal digits of a signature. */
const MAC_LENGTH = 32
/** Prefix of the messages that the database itself signs. */
const FROM_DATABASE = 'account '

/**
 * Signs the messages between nodes, and checks received ones. Format: `MAC TEXT`. Invalid messages are
 * counted and otherwise ignored. A copied message is valid too, so a message may only cause nodes to read
 * something again.
 */
export class NodeMessages {
  readonly #secrets: Secrets
  #dropped = 0

  constructor(secrets: Secrets) {
    this.#secrets = secrets
  }

  /** Number of received messages that were ignored because they were invalid. */
  get dropped(): number {
    return this.#dropped
  }

  /** Signs a text. Throws if the message would be too long. */
  seal(text: string): string {
    const message = `${macOf(this.#secrets, text)} ${text}`
    if (Buffer.byteLength(message) > MAX_MESSAGE_BYTES)
      throw new RangeError(`a message between nodes may have ${MAX_MESSAGE_BYTES} bytes at most`)
    return message
  }

  /**
   * Returns the text of a message; undefined if it is too long or was not signed with the same secret, or, while
   * the secret is changed, with one of the two.
   */
  open(message: Uint8Array): string | undefined {
    if (message.length > MAX_MESSAGE_BYTES) return this.#drop()
    if (message.length <= MAC_LENGTH) return this.#drop()
    const bytes = Buffer.from(message.buffer, message.byteOffset, message.length)
    const text = bytes.toString('utf8', MAC_LENGTH + 1)
    const mac = bytes.subarray(0, MAC_LENGTH + 1)
    const isSignedWith = (keys: SecretKeys): boolean =>
      timingSafeEqual(mac, Buffer.from(`${macOf(keys, text)} `))
    const { other } = this.#secrets
    return isSignedWith(this.#secrets) || (other && isSignedWith(other)) ? text : this.#drop()
  }

  #drop(): undefined {
    this.#dropped += 1
    return undefined
  }
}

// The database has a separate signing key, so that a copy of the database cannot sign as a node.
function macOf(keys: SecretKeys, text: string): string {
  const key = text.startsWith(FROM_DATABASE) ? databaseMessageKey(keys) : keys.messageKey
  return createHmac('sha256', key).update(text).digest('hex').slice(0, MAC_LENGTH)
}
