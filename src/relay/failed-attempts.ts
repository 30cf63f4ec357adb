import type { Channel } from '../domain/channel.ts'
import { type Failure, finalError } from './failure.ts'
import type { FailureLog, Reaction, UpstreamFailure } from './failure-log.ts'

/**
 * The failed attempts of one call. Each is logged once it is known what was done about it: at the next
 * attempt, with the last word, or when this is disposed of.
 */
export class FailedAttempts implements Disposable {
  readonly #log: FailureLog
  readonly #failures: Failure[] = []
  #unlogged: (UpstreamFailure & { readonly failure: Failure }) | undefined

  constructor(log: FailureLog) {
    this.#log = log
  }

  /** Whether any attempt failed so far. */
  get hasAny(): boolean {
    return this.#failures.length > 0
  }

  /** Takes note of a failure that no upstream is to be warned of. */
  add(failure: Failure): void {
    this.#failures.push(failure)
  }

  /** Takes note of a failure of an upstream. */
  addOfUpstream({ call, channel, key }: Pick<UpstreamFailure, 'call' | 'channel' | 'key'>, failure: Failure): void {
    this.#failures.push(failure)
    const { cause, status, upstreamMessage: said } = failure
    this.#unlogged = { call, channel, key, cause, failure, ...(status !== undefined && { status }), upstreamMessage: said }
  }

  /** Another attempt begins, at this channel. */
  nextAttemptAt(channel: Channel): void {
    if (this.#unlogged) this.#writeLog(this.#unlogged.channel === channel ? 'next key' : 'next channel')
  }

  /** The error that the client gets in the end. */
  finalError(): Error {
    const word = finalError(this.#failures)
    this.#writeLog(word === this.#unlogged?.failure.refusal ? 'returned to the client' : 'gave up')
    return word
  }

  [Symbol.dispose](): void {
    this.#writeLog('gave up')
  }

  #writeLog(reaction: Reaction): void {
    const untold = this.#unlogged
    if (!untold) return
    this.#unlogged = undefined
    this.#log.report(untold, reaction, performance.now())
  }
}
