import type { Channel } from '../domain/records/channel.ts'
import { type Account, ALL_MODELS } from '../upstreams/account-rests.ts'
import type { ChannelMinutes } from '../upstreams/channel-minutes.ts'
import type { FailureLog, FailureReaction, UpstreamFailure } from './failure-log.ts'
import { ruleOf } from './failure-table.ts'
import { CLIENT_DISCONNECTED, type Failure, finalError, UpstreamRefusal } from './failure.ts'

/**
 * Failed attempts of one call. Each failure is logged together with what happens next: another attempt, the
 * final error, or the end of the call.
 */
export class FailedAttempts implements Disposable {
  readonly #log: FailureLog
  readonly #minutes: ChannelMinutes
  readonly #failures: Failure[] = []
  /** Accounts that failed; all models of a key if the failure is not about the model. */
  readonly #places: Account[] = []
  readonly #reasons: string[] = []
  /** Channels that failed; undefined before the first one. */
  #channels: Set<Channel> | undefined
  /** The first error of a channel for which no request could be prepared; undefined if there is none. */
  preparationError: unknown
  /** Number of answers that failed and reported usage. */
  #paid = 0
  #model: string | undefined
  #unlogged: (UpstreamFailure & { readonly failure: Failure }) | undefined

  constructor(log: FailureLog, minutes: ChannelMinutes) {
    this.#log = log
    this.#minutes = minutes
  }

  /** Whether any attempt failed so far. */
  get hasAny(): boolean {
    return this.#failures.length > 0
  }

  /** The last failure; undefined if there was none. */
  get last(): Failure | undefined {
    return this.#failures.at(-1)
  }

  /**
   * Whether another attempt may follow an answer that failed although the provider is to be paid for it. Returns
   * true once.
   */
  mayPayAgain(): boolean {
    this.#paid += 1
    return this.#paid === 1
  }

  /** Adds a failure of which no warning is logged, for instance the client's disconnect. */
  add(failure: Failure): void {
    this.#failures.push(failure)
  }

  /** Whether an attempt of this call with the account has failed, so that another one would ask again. */
  isOf({ channel, key, model }: Account): boolean {
    return this.#places.some(
      (place) =>
        place.channel === channel &&
        place.key === key &&
        (place.model === ALL_MODELS || place.model === model),
    )
  }

  /** Returns true the first time that the call goes on with the models for this reason. */
  mayChange(reason: string): boolean {
    if (this.#reasons.includes(reason)) return false
    this.#reasons.push(reason)
    return true
  }

  /** Adds a failure of an upstream. */
  addOfUpstream(
    { call, channel, key }: Pick<UpstreamFailure, 'call' | 'channel' | 'key'>,
    account: Account,
    failure: Failure,
  ): void {
    this.#failures.push(failure)
    const { blames } = ruleOf(failure)
    const isOfModel = blames === 'key and model' || blames === 'model'
    this.#places.push(isOfModel ? account : { ...account, model: ALL_MODELS })
    ;(this.#channels ??= new Set()).add(channel)
    const { cause, status, upstreamMessage } = failure
    const stated = status === undefined ? {} : { status }
    this.#unlogged = { call, channel, key, cause, failure, ...stated, upstreamMessage }
  }

  /** Logs the last failure, now that another attempt begins at this channel. */
  nextAttemptAt(channel: Channel): void {
    if (this.#unlogged) this.#writeLog(this.#unlogged.channel === channel ? 'next key' : 'next channel')
  }

  /** Logs the last failure if another model is tried. */
  nextModel(name: string): void {
    if (this.#model !== undefined && this.#model !== name) this.#writeLog('next model')
    this.#model = name
  }

  /**
   * Records which channel settled the call. The channels that failed count the call as rescued by another channel.
   */
  answeredBy(name: string | undefined): void {
    for (const channel of this.#channels ?? [])
      if (channel.name !== name) this.#minutes.noteCall(channel, 'rescued')
  }

  /** The error for the client after all attempts failed. `shortestRestMs`: see `finalError`. */
  finalError(shortestRestMs: () => number | undefined): Error {
    const error = finalError(this.#failures, shortestRestMs)
    if (this.#failures.at(-1) !== CLIENT_DISCONNECTED)
      for (const channel of this.#channels ?? []) this.#minutes.noteCall(channel, 'lost')
    this.#writeLog(
      error instanceof UpstreamRefusal && this.#unlogged?.failure.refusal?.message === error.message
        ? 'returned to the client'
        : 'gave up',
    )
    return error
  }

  [Symbol.dispose](): void {
    this.#writeLog('gave up')
  }

  #writeLog(reaction: FailureReaction): void {
    const failure = this.#unlogged
    if (!failure) return
    this.#unlogged = undefined
    this.#log.report(failure, reaction, performance.now())
  }
}
