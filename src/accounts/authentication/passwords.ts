import { isBcrypt } from '../../domain/bcrypt-hash.ts'
import { GatewayError } from '../../errors.ts'
import { FairQueue } from '../../limits/fair-queue.ts'

/**
 * Argon2id with the library's defaults, 19 MiB and two passes, as OWASP recommends. The library takes 15 ms,
 * off the main thread; `node:crypto` takes 65 ms and does not write PHC strings.
 */
const COST = { memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const

/** Hash of random bytes, checked for unknown users, so that they take as long as known ones. */
const DUMMY_HASH =
  '$argon2id$v=19$m=19456,t=2,p=1$zuC28nmOxXhr8Hbx54GqSw$txp/5RkXm+d3N5vL7RPH5/QdjlAuXTuhQz/uvWZs/u8'

/** Bcrypt hash of random bytes at the cost that one-api and new-api use. */
const DUMMY_BCRYPT = '$2a$10$Kdyyi/7lrFk7OWL8uWVq9uHU6zrMXQOwphz7P365KzmqvqvihadLa'

/**
 * Number of passwords hashed at a time. Each takes 19 MiB and a thread of libuv, which disk access needs too.
 */
const CONCURRENCY = 2
/** Maximum number of waiting passwords; with more, the wait would take seconds. */
const MAX_WAITING = 100

/**
 * Hashes and verifies passwords. The queue serves each `flow` in turn: the address block of a visitor, or the
 * account that is signed in. The libraries are loaded at first use. New hashes are Argon2id; bcrypt hashes
 * come from imports.
 */
export class Passwords {
  readonly #queue = new FairQueue(CONCURRENCY, MAX_WAITING)

  /** Resolves to the hash to store. Rejects with `overloaded` if the queue is full. */
  hash(password: string, flow: string): Promise<string> {
    return this.#enqueue(flow, async () => {
      const { hash } = await import('@node-rs/argon2')
      return hash(normalized(password), COST)
    })
  }

  /**
   * Resolves to whether the password is right. A null hash, such as that of an unknown user, is never right
   * and takes as long as an Argon2id hash.
   */
  async verify(hash: string | null, password: string, flow: string): Promise<boolean> {
    const isRight = await this.#enqueue(flow, () => matches(hash ?? DUMMY_HASH, password))
    return isRight && hash !== null
  }

  /**
   * Spends the time of the algorithm that `hash` does not use. With hashes of both kinds in the database, a
   * wrong password then takes equally long for every name, so that timing does not reveal which names exist.
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
    // Hashes imported from other gateways were made without normalizing the password.
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

// Unifies the different encodings of the same letters that keyboards produce.
function normalized(password: string): string {
  return password.normalize('NFC')
}
