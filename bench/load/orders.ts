/** An HTTP request as raw bytes, and its destination. */
export interface Target {
  readonly port: number
  readonly message: string
}

/** Orders to the generator, which completes each one before it begins the next. */
export type Order =
  /**
   * Sends `requests` requests over `connections` connections, each as soon as the previous one is answered.
   */
  | (Target & { readonly kind: 'saturate'; readonly requests: number; readonly connections: number })
  /** Opens streams; completes when each has had its first event. */
  | (Target & { readonly kind: 'open'; readonly streams: number })
  /** Opens another stream, whose events are ignored. */
  | (Target & { readonly kind: 'hold' })
  /** Discards the events seen so far. */
  | { readonly kind: 'forget' }
  /** Reports the events seen since then. */
  | { readonly kind: 'tell' }
  /** Completes when all streams have ended. */
  | { readonly kind: 'ended' }
  /** Sends requests at a fixed rate, regardless of the state of earlier ones. */
  | (Target & { readonly kind: 'arrive'; readonly perSecond: number; readonly seconds: number })

/** Measurements since the order began. */
export interface Measurements {
  /** Number of pieces of content. */
  readonly events: number
  readonly failed: number
  /** The beginning of the first wrong response. */
  readonly firstFailure: string | undefined
  /**
   * Sorted latencies in microseconds: for events, between sending and receiving; for arrivals, in addition to
   * the time for which the upstream held the response.
   */
  readonly latencies: readonly number[]
}
