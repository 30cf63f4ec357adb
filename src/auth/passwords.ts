import { GatewayError } from '../errors.ts'
import { FairQueue } from '../limits/fair-queue.ts'

/** Argon2id, the library's default, over 19 MiB and two passes, as OWASP recommends. */
const COST = { memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const

/** Hash of random bytes at the same cost, so that unknown users take as long as known ones. */
const DUMMY_HASH =
  '$argon2id$v=19$m=19456,t=2,p=1$zuC28nmOxXhr8Hbx54GqSw$txp/5RkXm+d3N5vL7RPH5/QdjlAuXTuhQz/uvWZs/u8'

/** Number of passwords hashed at a time, each with 19 MiB and a thread that the disk needs too. */
const CONCURRENCY = 2
/** Maximum queue length, beyond which waiting would take seconds. */
const MAX_WAITING = 100

type Library = typeof import('@node-rs/argon2')

/**
 * Hashes and verifies passwords in a fair queue. `flow` is the address block of a visitor, or the account
 * that is signed in. The library is loaded at first use.
 */
export class Passwords {
  readonly #queue = new FairQueue(CONCURRENCY, MAX_WAITING)

  /** Resolves to the hash to store. Rejects with `overloaded` if too many wait. */
  hash(password: string, flow: string): Promise<string> {
    return this.#enqueue(flow, ({ hash }) => hash(normalized(password), COST))
  }

  /**
   * Resolves to whether the password is right. A null hash, as of an unknown user, takes as long and is never
   * right.
   */
  async verify(hash: string | null, password: string, flow: string): Promise<boolean> {
    const isRight = await this.#enqueue(flow, ({ verify }) =>
      verify(hash ?? DUMMY_HASH, normalized(password)),
    )
    return isRight && hash !== null
  }

  #enqueue<Result>(flow: string, work: (library: Library) => Promise<Result>): Promise<Result> {
    return this.#queue.run(flow, tooMany, async () => work(await import('@node-rs/argon2')))
  }
}

function tooMany(): GatewayError {
  const sentence = 'too many passwords are being checked at the moment; try again'
  return new GatewayError('overloaded', sentence, { retryAfter: 5 })
}

// Unifies the encodings that keyboards produce for the same letters.
function normalized(password: string): string {
  return password.normalize('NFC')
}
