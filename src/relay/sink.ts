import type { Failure } from './failure.ts'

/** How an attempt ended: the call is settled, or nothing was delivered and it may go elsewhere. */
export type AttemptEnd = Failure | 'settled'

/** What takes in an upstream's answer. It ends its attempt exactly once. */
export interface Sink {
  received(chunk: Buffer): void
  /** The upstream said all it had to say. */
  ended(): void
  /** No more will come: the connection broke, or a time-out struck. */
  failed(failure: Failure): void
  /** Once a second. */
  tick(nowMs: number): void
}

/** What a sink can do to the attempt that it takes in. */
export interface Source {
  pause(): void
  resume(): void
  /** Gives up the upstream call; nothing is received afterwards. */
  cancel(): void
  /** Tells how the attempt ended. */
  finish(end: AttemptEnd): void
}
