import type { CountedLimit } from './limit-counter.ts'
import type { ShareResponse, ShareRequest } from './share-messages.ts'

/** The other nodes, and the place where all of them keep their counts together. */
export interface Peers {
  /** Whether that place can be reached. */
  readonly isReachable: boolean
  /**
   * Whether what the others let through may not all have been told there yet, as its memory is new: until
   * then each node tells, and goes by its share.
   */
  readonly isRefilling: boolean
  /** How many nodes share the limits, this one included; at least 1. */
  readonly nodes: number
  /** Changes when that place has lost what it was told. */
  readonly generation: string | undefined
  /**
   * Tells and asks. `stale` means that nothing was done, since the memory is another by now. Rejects
   * where no answer comes in good time, or one that cannot be; then nobody knows whether anything was done.
   */
  exchange(counted: CountedLimit, question: ShareRequest): Promise<ShareResponse | 'stale'>
}

/** Nodes that cannot tell each other what they count: each has its share. `nodes` counts them. */
export function isolatedPeers(nodes: () => number): Peers {
  return {
    isReachable: false,
    isRefilling: false,
    generation: undefined,
    get nodes() {
      return Math.max(1, nodes())
    },
    exchange: () => Promise.reject(new Error('there is no place for common counts')),
  }
}
