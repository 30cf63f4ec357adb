import { createHmac, randomBytes } from 'node:crypto'
import { Refusal } from '@sluice/simulator'

const KEY = randomBytes(32)

/** Signature that a model gives to its thought or call. */
export function signed(content: string): string {
  return createHmac('sha256', KEY).update(content).digest('base64')
}

/** Counts of the signatures that came back to a model, and of those that it refused for want of one. */
export class ReturnedSignatures {
  #count = 0

  /** Signatures that came back so far. */
  get count(): number {
    return this.#count
  }

  /** Notes that a part of the history came back; throws `Refusal` unless it has its own signature. */
  require(content: string, signature: unknown, at: string): void {
    if (signature !== signed(content))
      throw new Refusal('malformed', `${at}: expected the signature that the model gave to this part`)
    this.#count++
  }
}
