import type { Origin } from './origin.ts'

/** Target of requests that may share connections. */
export interface Destination {
  /** Identity: requests to destinations with the same id share connections. */
  readonly id: string
  /** Identity of the server behind it, by which distrust is kept; several destinations may have the same. */
  readonly upstream: string
  /** Outlives a pool, so that the next connection resumes the TLS session. */
  readonly origin: Origin
}
