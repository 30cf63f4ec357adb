/**
 * Seconds that a client connection may be idle between two requests; clients get this number in the
 * `keep-alive` header.
 */
export const IDLE_TIMEOUT_SECONDS = 65

/** What a client connection is waiting for. */
export type ConnectionStep =
  | 'first request'
  | 'head'
  | 'body'
  | 'response'
  | 'end of body'
  | 'next request'
  | 'close'

/**
 * Seconds that each step may take. The head counts from its first byte, or from the start of the connection.
 * `end of body`: the rest of a body whose response is already sent. `close`: until the client closes a
 * connection that was ended. A response has no limit.
 */
const TIMEOUT_SECONDS: Readonly<Record<ConnectionStep, number>> = {
  'first request': 10,
  head: 10,
  body: 60,
  response: Number.POSITIVE_INFINITY,
  'end of body': 20,
  'next request': IDLE_TIMEOUT_SECONDS,
  close: 2,
}

/** The timeout of the current step of a client connection. */
export class StepTimeout {
  #step: ConnectionStep = 'first request'
  #secondsLeft = TIMEOUT_SECONDS['first request']

  /** The current step. */
  get step(): ConnectionStep {
    return this.#step
  }

  /** Whether the connection waits for a request of which no byte has arrived. */
  get isBetweenRequests(): boolean {
    return this.#step === 'first request' || this.#step === 'next request'
  }

  /** Whether the client gets an error response if the current step times out. */
  get isAnswered(): boolean {
    return this.#step === 'first request' || this.#step === 'head' || this.#step === 'body'
  }

  /** Starts the timeout of another step of the connection. */
  begin(step: ConnectionStep): void {
    this.#step = step
    this.#secondsLeft = TIMEOUT_SECONDS[step]
  }

  /** Counts one second; returns whether the step has timed out. */
  tick(): boolean {
    this.#secondsLeft -= 1
    return this.#secondsLeft < 0
  }
}
