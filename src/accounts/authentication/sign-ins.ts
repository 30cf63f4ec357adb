import { createHmac, randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { GatewayError } from '../../errors.ts'
import { FairQueue } from '../../limits/fair-queue.ts'

/**
 * Maximum number of users whose sign-ins are remembered; the one with the oldest last sign-in is evicted
 * first.
 */
const MAX_NAMES = 10_000
/** Maximum number of address ranges that are remembered for each user; the one used longest ago is dropped. */
const MAX_ADDRESS_BLOCKS = 8
/** Number of sign-ins that use the database and the threads for passwords at a time. */
const CONCURRENCY = 4
/** Maximum number of waiting sign-ins; with more, the wait would take seconds. */
const MAX_WAITING = 100

/**
 * Remembers the address blocks of earlier sign-ins while the process runs, so that password guesses from
 * elsewhere do not lock users out. Stores names and addresses only as HMACs with a key of this process.
 * `docs/api.md: Sessions`.
 */
export class SignIns {
  readonly #key = randomBytes(32)
  readonly #turns = new FairQueue(CONCURRENCY, MAX_WAITING)
  /** Address blocks of each user, the most recently used last; names and blocks are HMACs. */
  readonly #blocks: LRUCache<string, readonly string[]>

  constructor(names = MAX_NAMES) {
    this.#blocks = new LRUCache({ max: names })
  }

  /**
   * Runs a sign-in from an address block in its turn. The blocks take turns, so that many sign-ins from one do
   * not delay one from another, whatever they wait for. Rejects with `overloaded` if too many wait.
   */
  inTurn<Result>(block: string, work: () => Promise<Result>): Promise<Result> {
    return this.#turns.run(block, tooMany, work)
  }

  /** Records a sign-in with the right password. */
  remember(username: string, block: string): void {
    const [name, place] = this.#hashed(username, block)
    const others = (this.#blocks.get(name) ?? []).filter((one) => one !== place)
    this.#blocks.set(name, [...others, place].slice(-MAX_ADDRESS_BLOCKS))
  }

  /** Whether the user has signed in from that address block while this process was running. */
  knows(username: string, block: string): boolean {
    const [name, place] = this.#hashed(username, block)
    // A lookup does not count as use, so that guesses do not keep a name in the cache.
    return this.#blocks.peek(name)?.includes(place) ?? false
  }

  #hashed(username: string, block: string): [name: string, place: string] {
    const hash = (text: string): string => createHmac('sha256', this.#key).update(text).digest('base64url')
    return [hash(username), hash(`${block}\n${username}`)]
  }
}

function tooMany(): GatewayError {
  return new GatewayError('overloaded', 'too many sign-ins are being checked at the moment; try again', {
    retryAfter: 5,
  })
}
