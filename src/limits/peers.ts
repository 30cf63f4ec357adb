import type { CountedLimit } from './rate-counter.ts'
import type { PermitResponse, PermitRequest } from './share-messages.ts'

/** The other nodes, and the store that they share for counting. */
export interface Peers {
  /** Whether the shared store can be reached. */
  readonly isReachable: boolean
  /**
   * Whether a new generation of the store may still lack counts. Until nodes have reported again, each keeps
   * to its share of a limit.
   */
  readonly isRefilling: boolean
  /** Number of nodes that share the limits, this one included; at least 1. */
  readonly nodes: number
  /** Identifies the store's data; a new value means that earlier reports are lost. */
  readonly generation: string | undefined
  /**
   * Reports use and requests permits. `stale` means that nothing was done because the generation has changed.
   * Rejects on a timeout or an invalid response; it is then unknown whether anything was done.
   */
  exchange(counted: CountedLimit, request: PermitRequest): Promise<PermitResponse | 'stale'>
}

/**
 * Peers without a shared store: each node keeps to its share of a limit. `nodes` returns the number of nodes.
 */
export function isolatedPeers(nodes: () => number): Peers {
  return {
    isReachable: false,
    isRefilling: false,
    generation: undefined,
    get nodes() {
      return Math.max(1, nodes())
    },
    exchange: () => Promise.reject(new Error('nodes without Redis do not share counts')),
  }
}
