import type { Peers } from './peers.ts'

/** Report of a node on one subject, and its request for more places. */
export interface PlaceReport {
  /** Places that the node has. */
  readonly held: number
  /** Further places that it asks for. */
  readonly want: number
  /** Places that the store was told last; undefined where that is unknown. */
  readonly reported?: number | undefined
  /** Places of all nodes together. */
  readonly max: number
}

/** The other nodes, and the store in which all of them count their calls under way. */
export interface PlacePeers extends Omit<Peers, 'exchange'> {
  /** Interval of reports without news. */
  readonly refreshMs: number
  /**
   * Replaces what the store knows about this node's places, and takes free ones. Resolves to their number;
   * `stale` means that nothing was done, as the generation has changed. Rejects on a timeout or an invalid
   * response; whether anything was done is then unknown.
   */
  exchangePlaces(subject: string, report: PlaceReport): Promise<number | 'stale'>
}
