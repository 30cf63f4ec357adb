import type { Behaviour, Wire } from '../load/wire.ts'

/** A call that every candidate serves. */
export interface Call {
  readonly method: 'POST' | 'GET'
  /** The dialect of the client, and that of the upstream. */
  readonly client: Wire
  readonly upstream: Wire
  readonly behaviour: Behaviour
  /** Approximate bytes of the request's body. */
  readonly bytes: number
  /**
   * Prose by default; requests of a coding agent are in the chat dialect. A single character beyond Latin-1
   * doubles the size of a request's text for a program that decodes it, so ASCII is cheapest for that
   * program.
   */
  readonly content?: 'prose' | 'agent' | 'agent, ASCII'
  /**
   * Features that the call uses: it names a session, or its key has so little left that the tokens of its prompt are
   * remembered. Other candidates than this gateway have neither.
   */
  readonly uses?: readonly ('session' | 'remembered prompts')[] | undefined
}

/** A running program between client and upstream, or none for the direct path. */
export interface Running extends AsyncDisposable {
  readonly port: number
  /** Process id of the root of the measured process tree; 0 if there is none. */
  readonly pid: number
}

/** A program to measure. */
export interface Candidate {
  /**
   * Starts the candidate in front of an upstream, with a separate folder. Resolves to the reason if it cannot
   * be started here.
   */
  start(upstreamPort: number, folder: string): Promise<Running | string>
  /** The request for this call, as sent; undefined if the candidate cannot serve the call. */
  request(call: Call): { readonly path: string; readonly headers: string; readonly body: string } | undefined
}
