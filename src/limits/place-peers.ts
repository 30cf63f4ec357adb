import type { Peers } from './peers.ts'

/** Report of a node about one subject, with its request for more places. */
export interface SlotReport {
  /** Places that the node holds. */
  readonly held: number
  /** Additional places that it requests. */
  readonly want: number
  /** Places that were last reported to the store; undefined if that is unknown. */
  readonly reported?: number | undefined
  /** Maximum number of places of all nodes together. */
  readonly max: number
}

/** The other nodes, and the store in which all of them count their calls under way. */
export interface PlacePeers extends Omit<Peers, 'exchange'> {
  /** Interval of reports without news. */
  readonly refreshMs: number
  /**
   * Replaces what the store knows about this node's places, and takes free ones. Resolves to the number
   * taken; `stale` means that nothing was done because the generation has changed. Rejects on a timeout or an
   * invalid response; it is then unknown whether anything was done.
   */
  exchangeSlots(subject: string, report: SlotReport): Promise<number | 'stale'>
}
