import type { Origin } from './origin.ts'

/** Target of requests that may share connections. */
export interface Destination {
  /** Requests to destinations with the same id may share connections. */
  readonly id: string
  /**
   * Identifies the server in the list of distrusted upstreams; several destinations may have the same server.
   */
  readonly upstream: string
  /**
   * Address and TLS session. They are kept when a pool is deleted, so that a later connection can resume the
   * session.
   */
  readonly origin: Origin
}
