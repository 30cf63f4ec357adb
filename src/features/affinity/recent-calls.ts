const SLOT_MS = 5_000
const SLOTS = 12

interface Slot {
  all: number
  readonly byKey: Map<string, number>
}

/** Attempts of the last minute at the keys of one channel. */
class ChannelCalls {
  /** Counts of attempts in the last minute: twelve slots of five seconds each. */
  readonly slots: Slot[] = []
  /** Number of the five-second slot of the last attempt, counted from the zero of the clock. */
  latest = -1

  advance(slot: number): void {
    if (slot === this.latest) return
    for (let past = Math.max(this.latest + 1, slot - SLOTS + 1); past <= slot; past++)
      this.slots[past % SLOTS] = { all: 0, byKey: new Map() }
    this.latest = slot
  }
}

/** Counts the attempts of the last minute by channel and key. */
export class RecentCalls {
  readonly #channels = new Map<string, ChannelCalls>()
  readonly #nowMs: () => number

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  add(channel: string, key: string): void {
    const calls = this.#channels.get(channel) ?? new ChannelCalls()
    this.#channels.set(channel, calls)
    const now = this.#slot
    calls.advance(now)
    const slot = calls.slots[now % SLOTS] as Slot
    slot.all++
    slot.byKey.set(key, (slot.byKey.get(key) ?? 0) + 1)
  }

  counts(channel: string, key: string): { readonly ofKey: number; readonly ofChannel: number } {
    const calls = this.#channels.get(channel)
    let [ofKey, ofChannel] = [0, 0]
    if (!calls) return { ofKey, ofChannel }
    calls.advance(this.#slot)
    for (const { all, byKey } of calls.slots) {
      ofChannel += all
      ofKey += byKey.get(key) ?? 0
    }
    return { ofKey, ofChannel }
  }

  get #slot(): number {
    return Math.floor(this.#nowMs() / SLOT_MS)
  }
}
