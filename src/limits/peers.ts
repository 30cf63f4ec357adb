import type { Counted } from './counts.ts'
import type { Answer, Question } from './exchange.ts'

/** The other nodes, and the place where all of them keep their counts together. */
export interface Peers {
  /** Whether that place can be reached. */
  readonly isThere: boolean
  /**
   * Whether what the others let through may not all have been told there yet, as its memory is new: until
   * then each node tells, and goes by its share.
   */
  readonly isFilling: boolean
  /** How many nodes share the limits, this one included; at least 1. */
  readonly nodes: number
  /** Changes when that place has lost what it was told. */
  readonly memory: string | undefined
  /**
   * Tells and asks. `forgotten` means that nothing was done, since the memory is another by now. Rejects
   * where no answer comes in good time, or one that cannot be; then nobody knows whether anything was done.
   */
  exchange(counted: Counted, question: Question): Promise<Answer | 'forgotten'>
}

/** Nodes that cannot tell each other what they count: each has its share. `nodes` counts them. */
export function peersApart(nodes: () => number): Peers {
  return {
    isThere: false,
    isFilling: false,
    memory: undefined,
    get nodes() {
      return Math.max(1, nodes())
    },
    exchange: () => Promise.reject(new Error('there is no place for common counts')),
  }
}
