import { KEEP_ALIVE_SECONDS } from './response.ts'

/** The step that a connection waits for. */
export type Step =
  | 'first request'
  | 'head'
  | 'body'
  | 'answer'
  | 'end of body'
  | 'next request'
  | 'hang-up'

/**
 * Looks of the server's clock, one a second, that each may take: a head, from its first byte or the
 * connection's on; a request; the rest of a body that was answered already; a caller that was told to hang
 * up. An answer takes as long as it takes.
 */
const TIMEOUT_SECONDS: Readonly<Record<Step, number>> = {
  'first request': 10,
  head: 10,
  body: 60,
  answer: Number.POSITIVE_INFINITY,
  'end of body': 20,
  'next request': KEEP_ALIVE_SECONDS,
  'hang-up': 2,
}

/** The step that a client owes, and how long it may still take. */
export class StepTimeout {
  #step: Step = 'first request'
  #secondsLeft = TIMEOUT_SECONDS['first request']

  /** The step that is awaited. */
  get step(): Step {
    return this.#step
  }

  /** Whether it is a request, and nothing of it has come. */
  get isBetweenRequests(): boolean {
    return this.#step === 'first request' || this.#step === 'next request'
  }

  /** Whether a caller is told that it took too long. */
  get isAnswered(): boolean {
    return this.#step === 'first request' || this.#step === 'head' || this.#step === 'body'
  }

  /** Awaits this from now on. */
  begin(step: Step): void {
    this.#step = step
    this.#secondsLeft = TIMEOUT_SECONDS[step]
  }

  /** Called once a second; whether it takes too long. */
  tick(): boolean {
    this.#secondsLeft -= 1
    return this.#secondsLeft < 0
  }
}
