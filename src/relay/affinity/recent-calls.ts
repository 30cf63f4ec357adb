const SLOT_MS = 5_000
const SLOTS = 12

/** Attempts of the last minute at the keys of one channel. */
class ChannelCalls {
  /** Counts by key, in slots of five seconds. */
  readonly slots: Map<string, number>[] = []
  /** Number of the latest slot. */
  latest = -1

  advance(slot: number): void {
    if (slot === this.latest) return
    for (let past = Math.max(this.latest + 1, slot - SLOTS + 1); past <= slot; past++)
      this.slots[past % SLOTS] = new Map()
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
    const slot = this.#slot
    calls.advance(slot)
    const counts = calls.slots[slot % SLOTS] as Map<string, number>
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }

  counts(channel: string, key: string): { readonly ofKey: number; readonly ofChannel: number } {
    const calls = this.#channels.get(channel)
    let [ofKey, ofChannel] = [0, 0]
    if (!calls) return { ofKey, ofChannel }
    calls.advance(this.#slot)
    for (const counts of calls.slots)
      for (const [one, count] of counts ?? []) {
        ofChannel += count
        if (one === key) ofKey += count
      }
    return { ofKey, ofChannel }
  }

  get #slot(): number {
    return Math.floor(this.#nowMs() / SLOT_MS)
  }
}
