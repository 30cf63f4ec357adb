import { createHmac, randomBytes } from 'node:crypto'
import { Refusal } from '@sluice/simulator'

const KEY = randomBytes(32)

/** The signature that a model gives to a thought or call. */
export function signed(content: string): string {
  return createHmac('sha256', KEY).update(content).digest('base64')
}

/**
 * Counts the signatures that were returned to a model, and the requests that it refused because one was
 * missing.
 */
export class ReturnedSignatures {
  #count = 0

  /** The number of signatures returned so far. */
  get count(): number {
    return this.#count
  }

  /** Records that a part of the history was returned; throws `Refusal` unless it has its own signature. */
  require(content: string, signature: unknown, at: string): void {
    if (signature !== signed(content))
      throw new Refusal('malformed', `${at}: expected the signature that the model gave to this part`)
    this.#count++
  }
}
