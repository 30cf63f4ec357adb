import { AddressBlock, type CountedConnection } from './address-blocks.ts'

/** Limits on the number of open connections. */
export interface ConnectionLimits {
  readonly total: number
  /**
   * Connections per address block; a request through a trusted proxy counts as one for its client's block.
   */
  readonly perBlock: number
  /** Part of the total that is kept for connections from this machine while no idle one can be closed. */
  readonly reserve: number
}

/** Other end of a connection, as the limits see it. */
export interface Peer {
  /** Address block that the connection counts for. */
  readonly block: string
  /** Whether it is a trusted proxy, whose own address is not limited. */
  readonly isProxy: boolean
  readonly isLoopback: boolean
}

/**
 * Shares the connections of a server among address blocks. To make room, an idle connection is closed: the
 * oldest of the block itself if the block is at its limit, else the oldest of the block with the most
 * connections. Connections with a request under way are never closed, nor new ones before `markRead`.
 */
export class ConnectionLimiter {
  readonly #limits: ConnectionLimits
  readonly #blocks = new Map<string, AddressBlock>()
  #open = 0
  /** Count of refused connections, and of refused requests through proxies. */
  refused = 0
  /** Count of idle connections that were closed to make room. */
  displaced = 0

  constructor(limits: ConnectionLimits) {
    this.#limits = limits
  }

  /** Number of open connections. */
  get open(): number {
    return this.#open
  }

  /** Whether a new connection needs no other to be closed. */
  hasRoom({ block: name, isProxy }: Peer): boolean {
    const count = isProxy ? 0 : (this.#blocks.get(name)?.count ?? 0)
    return count < this.#limits.perBlock && this.#open < this.#limits.total - this.#limits.reserve
  }

  /** Counts a new connection; `close` closes it. Undefined if there is no room. */
  admit({ block: name, isProxy, isLoopback }: Peer, close: () => void): CountedConnection | undefined {
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

  /** Counts a request through a proxy for its client's block, until `endRequest`; false at the limit. */
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

  /** Finds the block with the most connections among those with idle ones; proxies come last. */
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
