import type { Origin } from './origin.ts'

/** Target of requests that may share connections. */
export interface Destination {
  /** Requests to destinations with the same id may share connections. */
  readonly id: string
  /** Identifies the server for `DistrustedUpstreams`; several destinations may have the same server. */
  readonly upstream: string
  /** Kept when a pool is deleted, so that a later connection can resume the TLS session. */
  readonly origin: Origin
}
