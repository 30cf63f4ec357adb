import { GatewayError } from '../errors.ts'

/** Argon2id (the library's own choice) over 19 MiB, twice: as OWASP recommends. */
const COST = { memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const

/** Hashed at the same cost, of bytes that nobody kept: who is not there takes as long as who is. */
const NOBODYS =
  '$argon2id$v=19$m=19456,t=2,p=1$zuC28nmOxXhr8Hbx54GqSw$txp/5RkXm+d3N5vL7RPH5/QdjlAuXTuhQz/uvWZs/u8'

/** Passwords hashed at one time, each in 19 MiB and on a thread that the disk needs too. */
const AT_ONCE = 2
/** More than that many waiting are refused: they would wait for seconds. */
const WAITING = 100

type Library = typeof import('@node-rs/argon2')

/** Hashes passwords and checks them, a few at a time. The library is loaded when somebody needs it. */
export class Passwords {
  #running = 0
  readonly #waiting: (() => void)[] = []

  /** What is kept of a password. Rejects with `overloaded` where too many wait. */
  hash(password: string): Promise<string> {
    return this.#turn(({ hash }) => hash(normal(password), COST))
  }

  /** Whether that is the password; null, for a user without one, or for none at all, takes as long and is never right. */
  async verify(hash: string | null, password: string): Promise<boolean> {
    const isRight = await this.#turn(({ verify }) => verify(hash ?? NOBODYS, normal(password)))
    return isRight && hash !== null
  }

  async #turn<Result>(work: (library: Library) => Promise<Result>): Promise<Result> {
    if (this.#running >= AT_ONCE) {
      if (this.#waiting.length >= WAITING) {
        throw new GatewayError(
          'overloaded',
          'too many passwords are being checked at the moment; try again',
          {
            retryAfter: 5,
          },
        )
      }
      // Whoever ends hands its place on.
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    } else this.#running += 1
    try {
      return await work(await import('@node-rs/argon2'))
    } finally {
      const next = this.#waiting.shift()
      if (next) next()
      else this.#running -= 1
    }
  }
}

// The same letters, however the keyboard puts them together.
function normal(password: string): string {
  return password.normalize('NFC')
}
