import { AddressBlock, type CountedConnection } from './address-blocks.ts'

/** How many connections there may be at one time. */
export interface ConnectionLimits {
  readonly total: number
  /**
   * Connections of one address block; requests of its clients that come through trusted proxies count as one
   * each.
   */
  readonly perBlock: number
  /**
   * Of the total, places that only connections from this machine take while there is nothing idle to close.
   */
  readonly reserve: number
}

/** The other end of a connection, as far as limits are concerned. */
export interface Peer {
  /** The address block that the connection counts for. */
  readonly block: string
  /** Trusted to speak for its clients: its own address is not limited. */
  readonly isProxy: boolean
  readonly isLoopback: boolean
}

/**
 * Shares the connections of a server among address blocks. An idle connection, one on which no answer is
 * owed, is closed when its place is needed: for a block at its limit the block's own oldest, near the total
 * the oldest of the block that holds most. Connections with a request under way are never closed.
 * `docs/operations.md: Connections`.
 */
export class ConnectionShares {
  readonly #limits: ConnectionLimits
  readonly #blocks = new Map<string, AddressBlock>()
  #open = 0
  /** Connections that were turned away so far, and requests that came through proxies. */
  refused = 0
  /** Idle connections that were closed so far to make room. */
  displaced = 0

  constructor(limits: ConnectionLimits) {
    this.#limits = limits
  }

  /** Connections that are open. */
  get open(): number {
    return this.#open
  }

  /**
   * Gives a new connection its seat, idle at first; `close` closes that connection. Undefined where there is
   * no room for it.
   */
  admit({ block: name, isProxy, isLoopback }: Peer, close: () => void): CountedConnection | undefined {
    const key = isProxy ? `proxy ${name}` : name
    const held = this.#blocks.get(key)
    const { total, reserve } = this.#limits
    const hasRoom =
      (isProxy || this.#hasRoomIn(held)) &&
      (this.#open < total - reserve ||
        this.#closeOldestOf(this.#largest()) ||
        (isLoopback && !isProxy && this.#open < total))
    if (!hasRoom) {
      this.refused += 1
      return undefined
    }
    const block = this.#addTo(key, isProxy)
    this.#open += 1
    return block.addConnection(close, () => {
      this.#open -= 1
      this.#removeFrom(block)
    })
  }

  /**
   * Counts a request of this block that came through a proxy, until `requestEnded`; false where the block is
   * at its limit.
   */
  beginRequest(name: string): boolean {
    if (!this.#hasRoomIn(this.#blocks.get(name))) {
      this.refused += 1
      return false
    }
    this.#addTo(name, false)
    return true
  }

  /** To be called once for each `requestBegan` that was true. */
  endRequest(name: string): void {
    const block = this.#blocks.get(name)
    if (block) this.#removeFrom(block)
  }

  #hasRoomIn(block: AddressBlock | undefined): boolean {
    return block === undefined || block.count < this.#limits.perBlock || this.#closeOldestOf(block)
  }

  #closeOldestOf(block: AddressBlock | undefined): boolean {
    const oldest = block?.oldestIdle
    if (!oldest) return false
    this.displaced += 1
    oldest.close()
    return true
  }

  /** The block with idle connections that holds most; a proxy's only where there is no other. */
  #largest(): AddressBlock | undefined {
    let largest: AddressBlock | undefined
    for (const block of this.#blocks.values()) {
      if (!block.oldestIdle) continue
      const isBefore =
        !largest || (block.isProxy === largest.isProxy ? block.count > largest.count : largest.isProxy)
      if (isBefore) largest = block
    }
    return largest
  }

  #addTo(key: string, isProxy: boolean): AddressBlock {
    let block = this.#blocks.get(key)
    if (!block) {
      block = new AddressBlock(key, isProxy)
      this.#blocks.set(key, block)
    }
    block.count += 1
    return block
  }

  #removeFrom(block: AddressBlock): void {
    block.count -= 1
    if (block.count === 0) this.#blocks.delete(block.key)
  }
}
