import type { Behaviour, Wire } from './wire.ts'

/** A call that every candidate makes. */
export interface Call {
  readonly method: 'POST' | 'GET'
  /** The dialect of the client, and that of the upstream. */
  readonly client: Wire
  readonly upstream: Wire
  readonly behaviour: Behaviour
  /** Approximate bytes of the request's body. */
  readonly bytes: number
  /**
   * Prose by default; a coding agent's requests are of the chat dialect. One character beyond Latin-1 makes
   * the text of a request twice as wide for a program that decodes it: ASCII is what costs that one least.
   */
  readonly content?: 'prose' | 'agent' | 'agent, ASCII'
}

/** A running program between client and upstream, or nothing for the direct path. */
export interface Running extends AsyncDisposable {
  readonly port: number
  /** Process id of the root of the measured process tree; 0 where there is none. */
  readonly pid: number
}

/** A program to measure. */
export interface Candidate {
  /**
   * Starts the candidate in front of an upstream, with a folder of its own. Resolves to the reason where it
   * cannot be started here.
   */
  start(upstreamPort: number, folder: string): Promise<Running | string>
  /** The request for this call, as sent; undefined where the candidate cannot serve the call. */
  request(call: Call): { readonly path: string; readonly headers: string; readonly body: string } | undefined
}
