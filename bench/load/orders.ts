/** An HTTP request as it goes over the connection, and where to. */
export interface Target {
  readonly port: number
  readonly message: string
}

/** What the generator is told to do; it answers each order before the next. */
export type Order =
  /** So many requests over so many connections, each as soon as the one before it is answered. */
  | (Target & { readonly kind: 'saturate'; readonly requests: number; readonly connections: number })
  /** Opens streams; answers when each has had its first event. */
  | (Target & { readonly kind: 'open'; readonly streams: number })
  /** Opens a stream beside all others, that is not looked at again. */
  | (Target & { readonly kind: 'hold' })
  /** Forgets the events that were seen so far. */
  | { readonly kind: 'forget' }
  /** Tells the events that were seen since. */
  | { readonly kind: 'tell' }
  /** Answers when all streams have ended. */
  | { readonly kind: 'ended' }
  /** Requests at a fixed rate, whatever becomes of those before. */
  | (Target & { readonly kind: 'arrive'; readonly perSecond: number; readonly seconds: number })

/** What it saw since the order. */
export interface Seen {
  /** Pieces of content. */
  readonly events: number
  readonly failed: number
  /** The beginning of the first answer that was wrong. */
  readonly firstFailure: string | undefined
  /**
   * Microseconds, sorted: of events, between sent and seen; of arrivals, what the upstream did not hold them
   * for.
   */
  readonly latencies: readonly number[]
}
