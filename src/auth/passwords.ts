import { isBcrypt } from '../domain/bcrypt-hash.ts'
import { GatewayError } from '../errors.ts'
import { FairQueue } from '../limits/fair-queue.ts'

/**
 * Argon2id, the library's default, over 19 MiB and two passes, as OWASP recommends. The library takes 15 ms
 * off the main thread; `node:crypto` takes 65, and writes no PHC strings.
 */
const COST = { memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const

/** Hash of random bytes at the same cost, so that unknown users take as long as known ones. */
const DUMMY_HASH =
  '$argon2id$v=19$m=19456,t=2,p=1$zuC28nmOxXhr8Hbx54GqSw$txp/5RkXm+d3N5vL7RPH5/QdjlAuXTuhQz/uvWZs/u8'

/** Bcrypt hash of random bytes at the cost that one-api and new-api use. */
const DUMMY_BCRYPT = '$2a$10$Kdyyi/7lrFk7OWL8uWVq9uHU6zrMXQOwphz7P365KzmqvqvihadLa'

/** Number of passwords hashed at a time, each with 19 MiB and a thread that the disk needs too. */
const CONCURRENCY = 2
/** Maximum queue length, beyond which waiting would take seconds. */
const MAX_WAITING = 100

/**
 * Hashes and verifies passwords in a fair queue. `flow` is the address block of a visitor, or the account
 * that is signed in. The libraries are loaded at first use. New hashes are Argon2id; those of bcrypt are
 * imported.
 */
export class Passwords {
  readonly #queue = new FairQueue(CONCURRENCY, MAX_WAITING)

  /** Resolves to the hash to store. Rejects with `overloaded` if too many wait. */
  hash(password: string, flow: string): Promise<string> {
    return this.#enqueue(flow, async () => {
      const { hash } = await import('@node-rs/argon2')
      return hash(normalized(password), COST)
    })
  }

  /**
   * Resolves to whether the password is right. A null hash, as of an unknown user, takes as long as one of
   * Argon2id and is never right.
   */
  async verify(hash: string | null, password: string, flow: string): Promise<boolean> {
    const isRight = await this.#enqueue(flow, () => matches(hash ?? DUMMY_HASH, password))
    return isRight && hash !== null
  }

  /**
   * Spends the time of the algorithm by which `hash` was not verified. Where hashes of both exist, a wrong
   * password then takes as long for every name, and does not tell which names exist.
   */
  async spendOtherTime(hash: string | null, password: string, flow: string): Promise<void> {
    const other = hash !== null && isBcrypt(hash) ? DUMMY_HASH : DUMMY_BCRYPT
    await this.#enqueue(flow, () => matches(other, password))
  }

  #enqueue<Result>(flow: string, work: () => Promise<Result>): Promise<Result> {
    return this.#queue.run(flow, tooMany, work)
  }
}

async function matches(hash: string, password: string): Promise<boolean> {
  if (isBcrypt(hash)) {
    // Other gateways hash a password as it was sent.
    const { verify } = await import('@node-rs/bcrypt')
    return verify(password, hash)
  }
  const { verify } = await import('@node-rs/argon2')
  return verify(hash, normalized(password))
}

function tooMany(): GatewayError {
  const sentence = 'too many passwords are being checked at the moment; try again'
  return new GatewayError('overloaded', sentence, { retryAfter: 5 })
}

// Unifies the encodings that keyboards produce for the same letters.
function normalized(password: string): string {
  return password.normalize('NFC')
}
