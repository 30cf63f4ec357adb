/** The connections of one address block, with those that are idle in the order in which they became so. */
export class AddressBlock {
  readonly key: string
  readonly isProxy: boolean
  /** Connections, and requests that came through proxies. */
  count = 0
  /** The two ends of the list of idle seats, for the block's seats alone. */
  oldestIdle: CountedConnection | undefined
  newestIdle: CountedConnection | undefined

  constructor(key: string, isProxy: boolean) {
    this.key = key
    this.isProxy = isProxy
  }

  /** A seat for a new connection of this block, idle. `left` is called once, when the connection is gone. */
  addConnection(close: () => void, onReleased: () => void): CountedConnection {
    return new CountedConnection(this, close, onReleased)
  }
}

/**
 * The place of one connection in the accounting. Idle seats are linked to each other, so that a request costs
 * no search and no memory.
 */
export class CountedConnection {
  readonly #block: AddressBlock
  readonly #close: () => void
  readonly #onReleased: () => void
  #older: CountedConnection | undefined
  #newer: CountedConnection | undefined
  #state: 'idle' | 'busy' | 'left' = 'busy'

  constructor(block: AddressBlock, close: () => void, onReleased: () => void) {
    this.#block = block
    this.#close = close
    this.#onReleased = onReleased
    this.markIdle()
  }

  /** No answer is owed on the connection: from now on it may be closed to make room. */
  markIdle(): void {
    if (this.#state !== 'busy') return
    this.#state = 'idle'
    const { newestIdle } = this.#block
    this.#older = newestIdle
    if (newestIdle) newestIdle.#newer = this
    else this.#block.oldestIdle = this
    this.#block.newestIdle = this
  }

  /** A request is under way on it. */
  markBusy(): void {
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
  release(): void {
    if (this.#state === 'left') return
    this.markBusy()
    this.#state = 'left'
    this.#onReleased()
  }

  /** Closes the connection, whose place is free at once. */
  close(): void {
    this.release()
    this.#close()
  }
}
