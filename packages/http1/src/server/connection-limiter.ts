import { AddressBlock, type CountedConnection } from './address-blocks.ts'

/** Limits on the number of open connections. */
export interface ConnectionLimits {
  readonly total: number
  /**
   * Maximum number of connections per address block. A request through a trusted proxy counts as a connection
   * of its client's block.
   */
  readonly perBlock: number
  /**
   * Number of connections, out of the total, that only clients on this machine may use while no idle
   * connection can be closed.
   */
  readonly reserve: number
}

/** The other end of a connection: a client or a proxy. */
export interface ConnectionPeer {
  /** The address block for which the connection counts. */
  readonly block: string
  /** Whether the peer is a trusted proxy, to which no limit per block applies. */
  readonly isProxy: boolean
  readonly isLoopback: boolean
}

/**
 * Divides the connections of a server among address blocks. To make room, an idle connection is closed: the
 * oldest of the same block if that block is at its limit, otherwise the oldest of the block with the most
 * connections. Connections with a request under way are never closed, and new connections only after
 * `markRead`.
 */
export class ConnectionLimiter {
  readonly #limits: ConnectionLimits
  readonly #blocks = new Map<string, AddressBlock>()
  #open = 0
  /** Number of refused connections, plus refused requests through proxies. */
  refused = 0
  /** Number of idle connections that were closed to make room. */
  displaced = 0

  constructor(limits: ConnectionLimits) {
    this.#limits = limits
  }

  /** Number of open connections. */
  get open(): number {
    return this.#open
  }

  /** Whether a new connection fits without closing another one. */
  hasRoom({ block: name, isProxy }: ConnectionPeer): boolean {
    const count = isProxy ? 0 : (this.#blocks.get(name)?.count ?? 0)
    return count < this.#limits.perBlock && this.#open < this.#limits.total - this.#limits.reserve
  }

  /**
   * Counts a new connection. `close` closes it to make room for another one. Returns undefined if there is no
   * room.
   */
  admit(
    { block: name, isProxy, isLoopback }: ConnectionPeer,
    close: () => void,
  ): CountedConnection | undefined {
    const key = isProxy ? `proxy ${name}` : name
    const known = this.#blocks.get(key)
    const { total, reserve } = this.#limits
    const hasRoom =
      (isProxy || this.#hasRoomIn(known)) &&
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
   * Counts a request through a proxy for its client's block, until `endRequest`. Returns false if the block
   * is at its limit.
   */
  beginRequest(name: string): boolean {
    if (!this.#hasRoomIn(this.#blocks.get(name))) {
      this.refused += 1
      return false
    }
    this.#addTo(name, false)
    return true
  }

  /** Ends the count of a request; call it once for each `beginRequest` that returned true. */
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

  /**
   * Finds the block with the most connections among the blocks that have an idle connection; proxies come
   * last.
   */
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
