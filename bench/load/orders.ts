/** An HTTP request as raw bytes, and its destination. */
export interface Target {
  readonly port: number
  readonly message: string
}

/** Orders to the generator, which completes each one before the next. */
export type Order =
  /** Sends so many requests over so many connections, each as soon as the one before it is answered. */
  | (Target & { readonly kind: 'saturate'; readonly requests: number; readonly connections: number })
  /** Opens streams; completes when each has had its first event. */
  | (Target & { readonly kind: 'open'; readonly streams: number })
  /** Opens a stream beside all others, whose events are ignored. */
  | (Target & { readonly kind: 'hold' })
  /** Forgets the events seen so far. */
  | { readonly kind: 'forget' }
  /** Reports the events seen since. */
  | { readonly kind: 'tell' }
  /** Completes when all streams have ended. */
  | { readonly kind: 'ended' }
  /** Sends requests at a fixed rate, whatever the state of earlier ones. */
  | (Target & { readonly kind: 'arrive'; readonly perSecond: number; readonly seconds: number })

/** Measurements since the order began. */
export interface Measurements {
  /** Pieces of content. */
  readonly events: number
  readonly failed: number
  /** The beginning of the first wrong response. */
  readonly firstFailure: string | undefined
  /**
   * Sorted latencies in microseconds: for events between sending and receiving; for arrivals the time beyond
   * the upstream's hold.
   */
  readonly latencies: readonly number[]
}
