import { createHmac, randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'

/**
 * Maximum number of users whose sign-ins are remembered; the one with the oldest last sign-in is evicted
 * first.
 */
const MAX_NAMES = 10_000
/** Maximum number of address ranges that are remembered for each user; the one used longest ago is dropped. */
const MAX_ADDRESS_BLOCKS = 8

/**
 * Remembers the address blocks of earlier sign-ins while the process runs, so that password guesses from
 * elsewhere do not lock users out. Stores names and addresses only as HMACs with a key of this process.
 * `docs/api.md: Sessions`.
 */
export class SignIns {
  readonly #key = randomBytes(32)
  /** Address blocks of each user, the most recently used last; names and blocks are HMACs. */
  readonly #blocks: LRUCache<string, readonly string[]>

  constructor(names = MAX_NAMES) {
    this.#blocks = new LRUCache({ max: names })
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
