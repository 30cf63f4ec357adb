import type { Channel } from '../domain/records/channel.ts'
import type { Model } from '../domain/records/model.ts'

/**
 * Share of calls (0 to 1) whose channel is always chosen by weight, so that a channel that has become faster
 * is noticed.
 */
const BY_WEIGHT_SHARE = 0.1
/** Milliseconds for which a measured time to the first byte is used. */
const WINDOW_MS = 60_000
/**
 * Maximum number of measured times to the first byte that are stored per channel and model; older ones are
 * overwritten.
 */
const MAX_TIMES = 101

/**
 * What must be equal for times to the first byte to be compared. A stream, for example, sends its first byte
 * earlier than a whole response.
 */
interface ComparedCalls {
  readonly model: string
  readonly stream: boolean
}

interface Times {
  /** Alternately the time of a measurement and the measured duration, in milliseconds. */
  readonly values: number[]
  next: number
}

/**
 * How busy each channel is on this node: its running calls, and the times to the first byte in the last
 * minute. The data is stored by channel name, so that it survives a reload of the configuration.
 * `docs/configuration.md: Balance`.
 */
export class ChannelLoad {
  readonly #busy = new Map<string, number>()
  readonly #times = new Map<string, Times>()
  readonly #now: () => number

  /** `now` returns milliseconds of a monotonic clock. */
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
   * Returns a function that rates channels by their load or speed; the channel with the lowest rating should
   * be used. A channel without a measured time in the last minute is rated infinite. Undefined if only the
   * weights decide, which is always so for a tenth of the calls.
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
