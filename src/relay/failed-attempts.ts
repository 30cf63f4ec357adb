import type { Channel } from '../domain/channel.ts'
import { type Failure, lastWord } from './failure.ts'
import type { FailureLog, Reaction, UpstreamFailure } from './failure-log.ts'

/**
 * The failed attempts of one call. Each is logged once it is known what was done about it: at the next
 * attempt, with the last word, or when this is disposed of.
 */
export class FailedAttempts implements Disposable {
  readonly #log: FailureLog
  readonly #failures: Failure[] = []
  #untold: (UpstreamFailure & { readonly failure: Failure }) | undefined

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
  addOf({ call, channel, key }: Pick<UpstreamFailure, 'call' | 'channel' | 'key'>, failure: Failure): void {
    this.#failures.push(failure)
    const { cause, status, said } = failure
    this.#untold = { call, channel, key, cause, failure, ...(status !== undefined && { status }), said }
  }

  /** Another attempt begins, at this channel. */
  goOnAt(channel: Channel): void {
    if (this.#untold) this.#tell(this.#untold.channel === channel ? 'next key' : 'next channel')
  }

  /** The error that the client gets in the end. */
  lastWord(): Error {
    const word = lastWord(this.#failures)
    this.#tell(word === this.#untold?.failure.refusal ? 'returned to the client' : 'gave up')
    return word
  }

  [Symbol.dispose](): void {
    this.#tell('gave up')
  }

  #tell(reaction: Reaction): void {
    const untold = this.#untold
    if (!untold) return
    this.#untold = undefined
    this.#log.tell(untold, reaction, performance.now())
  }
}
