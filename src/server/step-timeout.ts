import { KEPT_SECONDS } from './response.ts'

/** The step that a connection waits for. */
export type Awaited =
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
const LOOKS: Readonly<Record<Awaited, number>> = {
  'first request': 10,
  head: 10,
  body: 60,
  answer: Number.POSITIVE_INFINITY,
  'end of body': 20,
  'next request': KEPT_SECONDS,
  'hang-up': 2,
}

/** The step that a client owes, and how long it may still take. */
export class Awaiting {
  #what: Awaited = 'first request'
  #looks = LOOKS['first request']

  /** The step that is awaited. */
  get what(): Awaited {
    return this.#what
  }

  /** Whether it is a request, and nothing of it has come. */
  get isRequest(): boolean {
    return this.#what === 'first request' || this.#what === 'next request'
  }

  /** Whether a caller is told that it took too long. */
  get isTold(): boolean {
    return this.#what === 'first request' || this.#what === 'head' || this.#what === 'body'
  }

  /** Awaits this from now on. */
  begin(what: Awaited): void {
    this.#what = what
    this.#looks = LOOKS[what]
  }

  /** Called once a second; whether it takes too long. */
  look(): boolean {
    this.#looks -= 1
    return this.#looks < 0
  }
}
