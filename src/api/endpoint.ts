import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Caller } from '../access/caller.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { CallRecord } from '../relay/call.ts'
import type { Relay } from '../relay/relay.ts'
import type { Area } from './envelopes.ts'

/** What every endpoint says of itself; the route table is a list of these. */
interface Declared {
  readonly method: 'GET' | 'POST'
  /** Matched exactly, as the caller wrote it: no decoding, no dot segments. */
  readonly path: string
  /** Which envelope its errors come in. */
  readonly area: Area
}

/** One request at an endpoint. */
export interface Visit {
  /** Minted by us; sent as `x-request-id`. */
  readonly id: string
  readonly startedMs: number
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly record: CallRecord
}

/** For whoever brings an API key. */
export interface KeyEndpoint extends Declared {
  readonly access: 'api-key'
  /** Where the key may be: a bearer's, or in `x-api-key` too, which then wins. */
  readonly keyIn: 'bearer' | 'either'
  handle(visit: Visit, caller: Caller, relay: Relay): Promise<void>
}

/** For everybody. */
export interface OpenEndpoint extends Declared {
  readonly access: 'anyone'
  handle(visit: Visit, isReady: () => Promise<boolean>): void | Promise<void>
}

/** For whoever watches over the gateway: callers on this machine, or bearers of `options.metrics_token` where one is set. */
export interface OperatorEndpoint extends Declared {
  readonly access: 'operator'
  handle(visit: Visit, metrics: Metrics): void
}

/** A route: it does not build without saying how it authenticates. */
export type Endpoint = KeyEndpoint | OpenEndpoint | OperatorEndpoint
