import { type ShareResponse, type ShareRequest, slotsOf } from '../../src/limits/share-messages.ts'

/**
 * The window that all nodes share, as each exchange changes it. Permits count from the moment they are given
 * until the last moment at which they can be used; used permits count at the end of their slot. As no permit
 * is counted earlier than it was used, no interval of the window's length exceeds the limit.
 *
 * The gateway runs this in Redis (`src/limits/redis-peers.ts`); this is the same algorithm in TypeScript,
 * which tests compare with it.
 */
export class SharedWindow {
  #amounts = new Map<number, number>()

  /** `nodes` is the number of nodes that share the window. */
  exchange(nowMs: number, question: ShareRequest, nodes: number): ShareResponse {
    const { windowMs, max, used, returned, kept, added, need, want } = question
    const { widthMs, ahead } = slotsOf(windowMs)
    const current = Math.ceil(nowMs / widthMs)
    const last = current + ahead
    // A slot in the future was written before the clock was set back.
    const read = [...this.#amounts].map(([slot, amount]) => [slot > last ? current : slot, amount] as const)
    this.#amounts = new Map()
    for (const [slot, amount] of read) if (slot * widthMs + windowMs > nowMs) this.#add(slot, amount)
    const atHand = this.#amounts.get(question.slot) ?? 0
    this.#amounts.set(question.slot, Math.max(0, atHand - used - returned - kept))
    this.#add(current, used)
    for (const [agoMs, amount] of added) {
      const at = Math.ceil((nowMs - agoMs) / widthMs)
      if (at * widthMs + windowMs > nowMs) this.#add(at, amount)
    }
    const free = Math.max(0, max - kept - this.#sum())
    const spare = Math.floor(free / (4 * nodes))
    const granted = Math.min(free, Math.max(need, Math.min(want, spare)))
    this.#add(last, kept + granted)
    const amounts = [...this.#amounts].filter(([, amount]) => amount > 0).toSorted(([a], [b]) => a - b)
    return { nowMs, version: 0, granted, slot: last, amounts }
  }

  #add(slot: number, amount: number): void {
    this.#amounts.set(slot, (this.#amounts.get(slot) ?? 0) + amount)
  }

  #sum(): number {
    return [...this.#amounts.values()].reduce((sum, amount) => sum + amount, 0)
  }
}
