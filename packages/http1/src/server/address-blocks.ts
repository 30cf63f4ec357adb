/**
 * The number of connections from one address block, and a list of its idle connections, the one idle for
 * longest first.
 */
export class AddressBlock {
  readonly key: string
  readonly isProxy: boolean
  /** Number of connections, plus requests of this block that came through proxies. */
  count = 0
  /** First and last element of the linked list of idle connections; only `CountedConnection` changes them. */
  oldestIdle: CountedConnection | undefined
  newestIdle: CountedConnection | undefined

  constructor(key: string, isProxy: boolean) {
    this.key = key
    this.isProxy = isProxy
  }

  /** Adds a connection. `onReleased` is called once, when the connection no longer counts. */
  addConnection(close: () => void, onReleased: () => void): CountedConnection {
    return new CountedConnection(this, close, onReleased)
  }
}

/**
 * One connection of an address block. It counts as busy until `markIdle` is called. Idle connections form a
 * linked list, so that a request needs neither a search nor an allocation.
 */
export class CountedConnection {
  readonly #block: AddressBlock
  readonly #close: () => void
  readonly #onReleased: () => void
  #older: CountedConnection | undefined
  #newer: CountedConnection | undefined
  #state: 'new' | 'idle' | 'busy' | 'released' = 'new'

  constructor(block: AddressBlock, close: () => void, onReleased: () => void) {
    this.#block = block
    this.#close = close
    this.#onReleased = onReleased
  }

  /** Marks a new connection idle after it was read for the first time, unless it has received a request. */
  markRead(): void {
    if (this.#state !== 'new') return
    this.#state = 'busy'
    this.markIdle()
  }

  /** Marks the connection idle: it may be closed to make room for a new one. */
  markIdle(): void {
    if (this.#state !== 'busy') return
    this.#state = 'idle'
    const { newestIdle } = this.#block
    this.#older = newestIdle
    if (newestIdle) newestIdle.#newer = this
    else this.#block.oldestIdle = this
    this.#block.newestIdle = this
  }

  /** Marks the connection busy with a request: it is not closed to make room. */
  markBusy(): void {
    if (this.#state === 'new') this.#state = 'busy'
    if (this.#state !== 'idle') return
    this.#state = 'busy'
    if (this.#older) this.#older.#newer = this.#newer
    else this.#block.oldestIdle = this.#newer
    if (this.#newer) this.#newer.#older = this.#older
    else this.#block.newestIdle = this.#older
    this.#older = undefined
    this.#newer = undefined
  }

  /** Stops counting the connection. */
  release(): void {
    if (this.#state === 'released') return
    this.markBusy()
    this.#state = 'released'
    this.#onReleased()
  }

  /** Stops counting the connection, and closes it. */
  close(): void {
    this.release()
    this.#close()
  }
}
