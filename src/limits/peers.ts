import type { CountedLimit } from './rate-counter.ts'

/** The other nodes, and the store (such as Redis) in which all nodes count together. */
export interface Peers {
  /** Whether the shared store can be reached. */
  readonly isReachable: boolean
  /**
   * Whether the store has lost its data recently, so that counts may be missing. Until all nodes have
   * reported again, each node uses only its own share of a limit.
   */
  readonly isRefilling: boolean
  /** Number of nodes that share the limits, including this one; at least 1. */
  readonly nodes: number
  /**
   * Identifies the data in the store. If it changes, the store has lost its data, and everything must be
   * reported again.
   */
  readonly generation: string | undefined
}

/** The other nodes, and the store in which all nodes count what they have used of rate limits. */
export interface PermitPeers extends Peers {
  /**
   * Reports what this node has used and requests permits. Resolves to `stale` if nothing was done because the
   * store's generation has changed. Rejects on a timeout or an invalid response; it is then unknown whether
   * the request was applied.
   */
  exchangePermits(counted: CountedLimit, request: PermitRequest): Promise<PermitResponse | 'stale'>
}

/**
 * Peers without a shared store: each node uses only its own share of a limit. `nodes` returns the number of
 * nodes.
 */
export function peersWithoutExchange(nodes: () => number): PermitPeers {
  return {
    isReachable: false,
    isRefilling: false,
    generation: undefined,
    get nodes() {
      return Math.max(1, nodes())
    },
    exchangePermits: () => Promise.reject(new Error('nodes without Redis do not share counts')),
  }
}

/** What a node reports about a user's or key's slots, and how many more it requests. */
export interface SlotReport {
  /** Slots that the node holds. */
  readonly held: number
  /** Number of additional slots that the node requests. */
  readonly want: number
  /** Number of slots that the node last reported; undefined if it is unknown whether the report arrived. */
  readonly reported?: number | undefined
  /** Maximum number of slots of all nodes together. */
  readonly max: number
}

/** The other nodes, and the store in which all nodes count their running calls. */
export interface SlotPeers extends Peers {
  /** Milliseconds after which slots are reported again although nothing has changed. */
  readonly refreshMs: number
  /**
   * Reports this node's slots to the store and takes free ones. Resolves to the number of slots taken, or to
   * `stale` if nothing was done because the store's generation has changed. Rejects on a timeout or an
   * invalid response; it is then unknown whether the request was applied.
   */
  exchangeSlots(subject: string, report: SlotReport): Promise<number | 'stale'>
}

/** How a time window is divided into buckets. All amounts in a bucket count as used at its end. */
export interface WindowBuckets {
  readonly widthMs: number
  /** Number of future buckets for which a node may hold permits. */
  readonly ahead: number
}

/**
 * Number of buckets in a window. With so many, rounding to buckets loses at most a hundredth of the limit.
 */
const BUCKETS = 128
const MIN_BUCKET_MS = 20
/** Maximum milliseconds for which permits may be held unused; at most `AHEAD_SHARE` of the window. */
const AHEAD_MS = 10_000
const AHEAD_SHARE = 1 / 4

/** Returns how a window of this many milliseconds is divided into buckets. */
export function bucketsOf(windowMs: number): WindowBuckets {
  const widthMs = Math.max(1, Math.ceil(Math.max(windowMs / BUCKETS, Math.min(MIN_BUCKET_MS, windowMs / 16))))
  const aheadMs = Math.min(AHEAD_MS, windowMs * AHEAD_SHARE)
  return { widthMs, ahead: Math.max(1, Math.floor(aheadMs / widthMs)) }
}

/** What one node reports about a limit, and how many permits it requests. */
export interface PermitRequest {
  readonly max: number
  readonly windowMs: number
  /**
   * Version of the window that this node has seen. If the store has a lower one, it has lost data. 0 if the
   * window may not exist.
   */
  readonly known: number
  /** Number of the bucket to which the node's permits belong. */
  readonly bucket: number
  /**
   * Number of permits of that bucket that were used since the last report. `returned` permits are given back
   * unused; `kept` ones remain with the node.
   */
  readonly used: number
  readonly returned: number
  readonly kept: number
  /** Amounts used without a permit, with their age in milliseconds. */
  readonly added: readonly (readonly [agoMs: number, amount: number])[]
  /** Number of permits for which calls are waiting. `want` is the number of permits requested in total. */
  readonly need: number
  readonly want: number
}

/** What all nodes have used of a limit, after a request was applied. */
export interface PermitResponse {
  /** Time of the store's clock in milliseconds. */
  readonly nowMs: number
  /** Increases with each change of the window. */
  readonly version: number
  readonly granted: number
  /** Number of the bucket to which the kept and the granted permits belong. */
  readonly bucket: number
  /** Amounts by bucket, in ascending order. Amounts in future buckets are permits that nodes hold. */
  readonly amounts: readonly (readonly [bucket: number, amount: number])[]
}
