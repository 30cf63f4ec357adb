import { hash, randomUUID } from 'node:crypto'

/** Who have a place of their own at most, in each limit. */
const PLACES = 50_000
/** Places that those share who come when all others are taken. */
const SHARED = 1_024
/** Places that a newcomer has looked at, one of which may be idle. */
const LOOKED_AT = 16

const SALT = randomUUID()

/** What is kept of somebody. */
interface Place {
  /** Whether nothing would be lost with it. */
  isIdle(nowMs: number): boolean
}

/**
 * Who is counted in one limit, in bounded room. A place is given up when it is idle, never while it limits
 * somebody: whoever comes when all are taken shares one with others, so that no crowd of strangers makes
 * anybody's count start anew.
 */
export class ClientTable<Kept extends Place> {
  readonly #places = new Map<string | number, Kept>()
  /** Goes round the places, a few for each newcomer once all are taken. */
  #hand: Iterator<[string | number, Kept]> | undefined
  readonly #open: (whom: string | number) => Kept
  readonly #most: number
  readonly #shared: number

  constructor(open: (whom: string | number) => Kept, most = PLACES, shared = SHARED) {
    this.#open = open
    this.#most = most
    this.#shared = shared
  }

  /** Places that are taken, shared ones too. */
  get size(): number {
    return this.#places.size
  }

  /** The place of somebody, if there is one. */
  get(whom: string | number): Kept | undefined {
    return this.#places.get(whom) ?? (this.#isFull ? this.#places.get(this.#sharedBy(whom)) : undefined)
  }

  /** The place of somebody, a new one if need be. */
  getOrCreate(whom: string | number, nowMs: number): Kept {
    const known = this.#places.get(whom)
    if (known) return known
    if (this.#isFull && !this.#giveUpOne(nowMs)) return this.#openFor(this.#sharedBy(whom))
    return this.#openFor(whom)
  }

  values(): Iterable<Kept> {
    return this.#places.values()
  }

  get #isFull(): boolean {
    return this.#places.size >= this.#most
  }

  #openFor(whom: string | number): Kept {
    let place = this.#places.get(whom)
    if (!place) this.#places.set(whom, (place = this.#open(whom)))
    return place
  }

  #giveUpOne(nowMs: number): boolean {
    for (let looked = 0; looked < LOOKED_AT; looked++) {
      this.#hand ??= this.#places.entries()
      const { done, value } = this.#hand.next()
      if (done) this.#hand = undefined
      else if (value[1].isIdle(nowMs)) {
        this.#places.delete(value[0])
        if (!this.#isFull) return true
      }
    }
    return false
  }

  // By a hash that nobody can aim.
  #sharedBy(whom: string | number): string {
    const digest = hash('sha256', `${SALT} ${whom}`, 'buffer')
    return `shared ${digest.readUInt32LE() % this.#shared}`
  }
}
