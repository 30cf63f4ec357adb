/** The connections of one address block, with those that are idle in the order in which they became so. */
export class Block {
  readonly key: string
  readonly isProxy: boolean
  /** Connections, and requests that came through proxies. */
  held = 0
  /** The two ends of the list of idle seats, for the block's seats alone. */
  oldestIdle: Seat | undefined
  newestIdle: Seat | undefined

  constructor(key: string, isProxy: boolean) {
    this.key = key
    this.isProxy = isProxy
  }

  /** A seat for a new connection of this block, idle. `left` is called once, when the connection is gone. */
  seat(close: () => void, left: () => void): Seat {
    return new Seat(this, close, left)
  }
}

/**
 * The place of one connection in the accounting. Idle seats are linked to each other, so that a request costs
 * no search and no memory.
 */
export class Seat {
  readonly #block: Block
  readonly #close: () => void
  readonly #left: () => void
  #older: Seat | undefined
  #newer: Seat | undefined
  #state: 'idle' | 'busy' | 'left' = 'busy'

  constructor(block: Block, close: () => void, left: () => void) {
    this.#block = block
    this.#close = close
    this.#left = left
    this.rest()
  }

  /** No answer is owed on the connection: from now on it may be closed to make room. */
  rest(): void {
    if (this.#state !== 'busy') return
    this.#state = 'idle'
    const { newestIdle } = this.#block
    this.#older = newestIdle
    if (newestIdle) newestIdle.#newer = this
    else this.#block.oldestIdle = this
    this.#block.newestIdle = this
  }

  /** A request is under way on it. */
  work(): void {
    if (this.#state !== 'idle') return
    this.#state = 'busy'
    if (this.#older) this.#older.#newer = this.#newer
    else this.#block.oldestIdle = this.#newer
    if (this.#newer) this.#newer.#older = this.#older
    else this.#block.newestIdle = this.#older
    this.#older = undefined
    this.#newer = undefined
  }

  /** The connection is gone, or is as good as that. */
  leave(): void {
    if (this.#state === 'left') return
    this.work()
    this.#state = 'left'
    this.#left()
  }

  /** Closes the connection, whose place is free at once. */
  close(): void {
    this.leave()
    this.#close()
  }
}
