import { GatewayError } from '../errors.ts'
import { FairQueue } from './fair-queue.ts'

/** Argon2id (the library's own choice) over 19 MiB, twice: as OWASP recommends. */
const COST = { memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const

/** Hashed at the same cost, of bytes that nobody kept: who is not there takes as long as who is. */
const NOBODYS =
  '$argon2id$v=19$m=19456,t=2,p=1$zuC28nmOxXhr8Hbx54GqSw$txp/5RkXm+d3N5vL7RPH5/QdjlAuXTuhQz/uvWZs/u8'

/** Passwords hashed at one time, each in 19 MiB and on a thread that the disk needs too. */
const AT_ONCE = 2
/** More than that many waiting are refused, of those who brought the most: they would wait for seconds. */
const WAITING = 100

type Library = typeof import('@node-rs/argon2')

/**
 * Hashes passwords and checks them, a few at a time, in turns that go round those who ask: `whose` is the
 * address block of a visitor, or the account that is signed in. The library is loaded when somebody needs it.
 */
export class Passwords {
  readonly #turns = new FairQueue(AT_ONCE, WAITING)

  /** What is kept of a password. Rejects with `overloaded` where too many wait. */
  hash(password: string, whose: string): Promise<string> {
    return this.#turn(whose, ({ hash }) => hash(normal(password), COST))
  }

  /**
   * Whether that is the password; null, for a user without one, or for none at all, takes as long and is
   * never right.
   */
  async verify(hash: string | null, password: string, whose: string): Promise<boolean> {
    const isRight = await this.#turn(whose, ({ verify }) => verify(hash ?? NOBODYS, normal(password)))
    return isRight && hash !== null
  }

  #turn<Result>(whose: string, work: (library: Library) => Promise<Result>): Promise<Result> {
    return this.#turns.run(whose, tooMany, async () => work(await import('@node-rs/argon2')))
  }
}

function tooMany(): GatewayError {
  const sentence = 'too many passwords are being checked at the moment; try again'
  return new GatewayError('overloaded', sentence, { retryAfter: 5 })
}

// The same letters, however the keyboard puts them together.
function normal(password: string): string {
  return password.normalize('NFC')
}
