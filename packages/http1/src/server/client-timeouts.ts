/** Idle timeout of a client connection between two requests; clients are told of it. */
export const IDLE_TIMEOUT_SECONDS = 65

/** Step that a client connection waits for. */
export type Step = 'first request' | 'head' | 'body' | 'response' | 'end of body' | 'next request' | 'close'

/**
 * Timeout of each step: a head from its first byte, or the connection's begin; a whole body; the rest of a
 * body that was answered already; the close by a client whose connection was ended. A response has none.
 */
const TIMEOUT_SECONDS: Readonly<Record<Step, number>> = {
  'first request': 10,
  head: 10,
  body: 60,
  response: Number.POSITIVE_INFINITY,
  'end of body': 20,
  'next request': IDLE_TIMEOUT_SECONDS,
  close: 2,
}

/** Timeout of the step that a client connection waits for. */
export class StepTimeout {
  #step: Step = 'first request'
  #secondsLeft = TIMEOUT_SECONDS['first request']

  /** Step that is awaited. */
  get step(): Step {
    return this.#step
  }

  /** Whether a request is awaited, and no byte of it has come. */
  get isBetweenRequests(): boolean {
    return this.#step === 'first request' || this.#step === 'next request'
  }

  /** Whether the client gets a response that reports the timeout. */
  get isAnswered(): boolean {
    return this.#step === 'first request' || this.#step === 'head' || this.#step === 'body'
  }

  /** Begins another step, with its full timeout. */
  begin(step: Step): void {
    this.#step = step
    this.#secondsLeft = TIMEOUT_SECONDS[step]
  }

  /** Counts one second; returns whether the step has timed out. */
  tick(): boolean {
    this.#secondsLeft -= 1
    return this.#secondsLeft < 0
  }
}
