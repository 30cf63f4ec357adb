import { createHmac, randomBytes } from 'node:crypto'
import { LRUCache } from 'lru-cache'

/** Names that are remembered; the one that signed in longest ago is forgotten first. */
const NAMES = 10_000
/** Address blocks of each. */
const BLOCKS = 8

/**
 * Remembers the address blocks that users signed in from, for as long as the process runs, so that guesses
 * from elsewhere do not keep them out. Names and addresses are kept as HMAC under a key of this process
 * alone. `docs/api.md: Sessions`.
 */
export class SignIns {
  readonly #key = randomBytes(32)
  /** The latest block last. */
  readonly #blocks: LRUCache<string, readonly string[]>

  constructor(names = NAMES) {
    this.#blocks = new LRUCache({ max: names })
  }

  /** Notes that the user of that name gave the right password from an address block. */
  remember(username: string, block: string): void {
    const [name, place] = this.#hashed(username, block)
    const others = (this.#blocks.get(name) ?? []).filter((one) => one !== place)
    this.#blocks.set(name, [...others, place].slice(-BLOCKS))
  }

  /** Whether that user signed in from there. */
  knows(username: string, block: string): boolean {
    const [name, place] = this.#hashed(username, block)
    // A guess is no sign-in: it does not keep a name from being forgotten.
    return this.#blocks.peek(name)?.includes(place) ?? false
  }

  #hashed(username: string, block: string): [name: string, place: string] {
    const hash = (text: string): string => createHmac('sha256', this.#key).update(text).digest('base64url')
    return [hash(username), hash(`${block}\n${username}`)]
  }
}
