import type { Channel } from '../domain/records/channel.ts'
import { type Failure, finalError } from './failure.ts'
import type { FailureLog, Reaction, UpstreamFailure } from './failure-log.ts'

/**
 * Failed attempts of one call. Each is logged when the reaction to it is known: at the next attempt, with the
 * final error, or on disposal.
 */
export class FailedAttempts implements Disposable {
  readonly #log: FailureLog
  readonly #failures: Failure[] = []
  /** The error of a channel that could not be asked at all; undefined where there is none. */
  unaskable: unknown
  #model: string | undefined
  #unlogged: (UpstreamFailure & { readonly failure: Failure }) | undefined

  constructor(log: FailureLog) {
    this.#log = log
  }

  /** Whether any attempt failed so far. */
  get hasAny(): boolean {
    return this.#failures.length > 0
  }

  /** Adds a failure that needs no warning about an upstream. */
  add(failure: Failure): void {
    this.#failures.push(failure)
  }

  /** Adds a failure of an upstream. */
  addOfUpstream(
    { call, channel, key }: Pick<UpstreamFailure, 'call' | 'channel' | 'key'>,
    failure: Failure,
  ): void {
    this.#failures.push(failure)
    const { cause, status, upstreamMessage } = failure
    const stated = status === undefined ? {} : { status }
    this.#unlogged = { call, channel, key, cause, failure, ...stated, upstreamMessage }
  }

  /** Logs the last failure: another attempt begins, at this channel. */
  nextAttemptAt(channel: Channel): void {
    if (this.#unlogged) this.#writeLog(this.#unlogged.channel === channel ? 'next key' : 'next channel')
  }

  /** Logs the last failure, if another model is tried. */
  nextModel(name: string): void {
    if (this.#model !== undefined && this.#model !== name) this.#writeLog('next model')
    this.#model = name
  }

  /** The error that the client gets in the end. */
  finalError(): Error {
    const error = finalError(this.#failures)
    this.#writeLog(error === this.#unlogged?.failure.refusal ? 'returned to the client' : 'gave up')
    return error
  }

  [Symbol.dispose](): void {
    this.#writeLog('gave up')
  }

  #writeLog(reaction: Reaction): void {
    const failure = this.#unlogged
    if (!failure) return
    this.#unlogged = undefined
    this.#log.report(failure, reaction, performance.now())
  }
}
