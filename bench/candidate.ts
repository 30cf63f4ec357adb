import type { Behaviour, Wire } from './wire.ts'

/** What is asked of a candidate. */
export interface Call {
  readonly method: 'POST' | 'GET'
  /** The protocol of the caller, and that of the upstream. */
  readonly caller: Wire
  readonly upstream: Wire
  readonly behaviour: Behaviour
  /** Bytes of the request's body, about. */
  readonly bytes: number
}

/** A program between the caller and the upstream, or nothing. */
export interface Running extends AsyncDisposable {
  readonly port: number
  /** Of the process whose tree is measured; 0 where there is none. */
  readonly pid: number
}

/** Something that is measured. */
export interface Candidate {
  /** Starts it in front of an upstream; a folder is its own. A string says why it cannot be started here. */
  start(upstreamPort: number, folder: string): Promise<Running | string>
  /** The request for this call, as it is sent; undefined where it cannot serve it. */
  request(call: Call): { readonly path: string; readonly headers: string; readonly body: string } | undefined
}
