import type { CountedLimit } from './rate-counter.ts'

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
}

/** The other nodes, and the store in which all of them count the use of rate limits. */
export interface PermitPeers extends Peers {
  /**
   * Reports use and requests permits. `stale` means that nothing was done because the generation has changed.
   * Rejects on a timeout or an invalid response; it is then unknown whether anything was done.
   */
  exchangePermits(counted: CountedLimit, request: PermitRequest): Promise<PermitResponse | 'stale'>
}

/**
 * Peers without a shared store: each node keeps to its share of a limit. `nodes` returns the number of nodes.
 */
export function isolatedPeers(nodes: () => number): PermitPeers {
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

/** Resolves like `response`, or rejects after `ms`. */
export async function withTimeout<Response>(response: Promise<Response>, ms: number): Promise<Response> {
  const { promise, reject } = Promise.withResolvers<never>()
  const late = new Error(`no response within ${ms} ms`)
  // After a blocked event loop the response may have arrived without being read yet, so it gets one more
  // turn.
  const timer = setTimeout(() => setImmediate(() => reject(late)), ms).unref()
  try {
    return await Promise.race([response, promise])
  } finally {
    clearTimeout(timer)
    response.catch(() => {})
  }
}

/** Report of a node about one subject, with its request for more slots. */
export interface SlotReport {
  /** Slots that the node holds. */
  readonly held: number
  /** Additional slots that it requests. */
  readonly want: number
  /** Slots that were last reported to the store; undefined if that is unknown. */
  readonly reported?: number | undefined
  /** Maximum number of slots of all nodes together. */
  readonly max: number
}

/** The other nodes, and the store in which all of them count their calls under way. */
export interface SlotPeers extends Peers {
  /** Interval of reports without news. */
  readonly refreshMs: number
  /**
   * Replaces what the store knows about this node's slots, and takes free ones. Resolves to the number
   * taken; `stale` means that nothing was done because the generation has changed. Rejects on a timeout or an
   * invalid response; it is then unknown whether anything was done.
   */
  exchangeSlots(subject: string, report: SlotReport): Promise<number | 'stale'>
}

/** Division of a window into buckets; amounts within a bucket count at its end. */
export interface WindowBuckets {
  readonly widthMs: number
  /** Number of future buckets for which a node may hold permits. */
  readonly ahead: number
}

/** Number of buckets in a window; enough that at most a hundredth of the limit is lost. */
const BUCKETS = 128
const MIN_BUCKET_MS = 20
/** Time for which permits may be held unused. */
const AHEAD_MS = 10_000
const AHEAD_SHARE = 1 / 4

/** Buckets of a window of this length. */
export function bucketsOf(windowMs: number): WindowBuckets {
  const widthMs = Math.max(1, Math.ceil(Math.max(windowMs / BUCKETS, Math.min(MIN_BUCKET_MS, windowMs / 16))))
  const aheadMs = Math.min(AHEAD_MS, windowMs * AHEAD_SHARE)
  return { widthMs, ahead: Math.max(1, Math.floor(aheadMs / widthMs)) }
}

/** Report of one node about a limit, with its request for permits. */
export interface PermitRequest {
  readonly max: number
  readonly windowMs: number
  /** Version of the window below which data was lost; 0 if the window may be missing. */
  readonly known: number
  /** Bucket to which the node's permits belong. */
  readonly bucket: number
  /** Permits of that bucket: used since the last report, returned, and kept. */
  readonly used: number
  readonly returned: number
  readonly kept: number
  /** Use without a permit, with its age. */
  readonly added: readonly (readonly [agoMs: number, amount: number])[]
  /** Permits for which calls wait, and permits wanted in total. */
  readonly need: number
  readonly want: number
}

/** Use of a limit by all nodes, after a request was applied. */
export interface PermitResponse {
  /** Time of the server's clock, in milliseconds. */
  readonly nowMs: number
  /** Rises with each change of the window. */
  readonly version: number
  readonly granted: number
  /** Bucket to which kept and granted permits belong. */
  readonly bucket: number
  /** Amounts by bucket, ascending; future buckets are permits in stock. */
  readonly amounts: readonly (readonly [bucket: number, amount: number])[]
}
