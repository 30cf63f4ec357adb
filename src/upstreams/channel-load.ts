import type { Channel } from '../domain/records/channel.ts'
import type { Model } from '../domain/records/model.ts'

/** Share of calls whose channel is chosen by weight, not by load or latency, so that a recovered one is noticed. */
const BY_WEIGHT_SHARE = 0.1
/** How long a measured time to the first byte is used. */
const WINDOW_MS = 60_000
/** Maximum number of times kept for a channel and model; older ones are overwritten. */
const MAX_TIMES = 101

/** Calls whose times to the first byte are comparable: a stream begins sooner than a whole response ends. */
interface ComparedCalls {
  readonly model: string
  readonly stream: boolean
}

interface Times {
  /** Timestamps and durations in turn, in milliseconds. */
  readonly values: number[]
  next: number
}

/**
 * Load of all channels on this node: the running calls, and the times to the first byte of the last minute.
 * It is kept by channel name, so that it survives a reload of the configuration. `docs/configuration.md:
 * Balance`.
 */
export class ChannelLoad {
  readonly #busy = new Map<string, number>()
  readonly #times = new Map<string, Times>()
  readonly #now: () => number

  /** `now` reads a monotonic clock in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** Counts the start of a call at a channel. */
  begin({ name }: Channel): void {
    this.#busy.set(name, (this.#busy.get(name) ?? 0) + 1)
  }

  /** Counts the end of a call. */
  end({ name }: Channel): void {
    const left = (this.#busy.get(name) ?? 1) - 1
    if (left > 0) this.#busy.set(name, left)
    else this.#busy.delete(name)
  }

  /** Records the time from a request to the first byte of its response, in milliseconds. */
  noteFirstByte({ name }: Channel, calls: ComparedCalls, tookMs: number): void {
    const key = keyOf(name, calls)
    let times = this.#times.get(key)
    if (!times) this.#times.set(key, (times = { values: [], next: 0 }))
    times.values[times.next] = this.#now()
    times.values[times.next + 1] = tookMs
    times.next = (times.next + 2) % (2 * MAX_TIMES)
  }

  /**
   * Returns a measure of channels, of which the smallest is preferred; undefined if only the weights decide,
   * as for a tenth of the calls. A channel without a time in the last minute is measured as infinite.
   */
  measure(
    balance: Model['balance'],
    calls: ComparedCalls,
    random: () => number,
  ): ((channel: Channel) => number) | undefined {
    if (balance === 'weight' || random() < BY_WEIGHT_SHARE) return undefined
    if (balance === 'least_busy') return ({ name }) => this.#busy.get(name) ?? 0
    return ({ name }) => this.#medianMs(keyOf(name, calls))
  }

  #medianMs(key: string): number {
    const { values } = this.#times.get(key) ?? { values: [] }
    const since = this.#now() - WINDOW_MS
    const recent: number[] = []
    for (let at = 0; at < values.length; at += 2)
      if ((values[at] as number) > since) recent.push(values[at + 1] as number)
    if (recent.length === 0) {
      this.#times.delete(key)
      return Number.POSITIVE_INFINITY
    }
    return recent.toSorted((a, b) => a - b)[recent.length >> 1] as number
  }
}

function keyOf(channel: string, { model, stream }: ComparedCalls): string {
  return `${channel}\0${model}\0${stream}`
}
