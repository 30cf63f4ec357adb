import type { Failure } from './failure.ts'

/** How an attempt ended: the call is settled, or nothing was delivered and it may go elsewhere. */
export type AttemptEnd = Failure | 'settled'

/** What takes in an upstream's answer. It ends its attempt exactly once. */
export interface Sink {
  received(chunk: Buffer): void
  /** The upstream said all it had to say. */
  ended(): void
  /** No more will come that could be used. */
  failed(failure: Failure): void
}

/** A sink for an answer that is wanted. */
export interface ResponseHandler extends Sink {
  /** It is a success, of this content type, which the caller may be told. */
  begin(contentType: string): void
  /** The caller went away; `reached` tells whether the upstream may be at work for it. */
  left(reached: boolean): void
  /** Once a second. */
  tick(nowMs: number): void
  /** The attempt ended by a mistake of the gateway's own: gives back what is shared with other calls. */
  abandon(): void
}

/** What a sink can do to the attempt that it takes in. */
export interface Source {
  pause(): void
  resume(): void
  /** Gives up the upstream call; nothing is received afterwards. */
  cancel(): void
  /** Nothing was delivered: the attempt ends with that. */
  fail(failure: Failure): void
  /** The attempt ends when this work, which settles the call, is done. */
  conclude(work: Promise<unknown>): void
  /** Takes what was thrown where the attempt did not call: it ends this call, and no other. */
  unforeseen(error: unknown): void
}
