import type { CountedLimit } from './rate-counter.ts'
import { type PermitRequest, type PermitResponse, bucketsOf } from './share-messages.ts'

/** Interval at which expired windows are removed. */
const SWEEP_MS = 10_000

/** Use of one limit by one subject: amounts by slot, and the time at which the last of them expires. */
interface Window {
  readonly amounts: Map<number, number>
  expiresMs: number
}

/**
 * Windows of limits that several processes share, in the memory of one, following the rules of
 * `PERMIT_SCRIPT`, which keeps them in Redis. Because a single process answers, windows cannot be lost, and
 * there are no generations.
 */
export class HeldShares {
  readonly #windows = new Map<string, Window>()
  readonly #nowMs: () => number
  #sweptMs = 0

  /** `nowMs` is a monotonic clock. */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs
  }

  /** Applies a request of one of `nodes` processes. */
  exchange({ name, subject }: CountedLimit, request: PermitRequest, nodes: number): PermitResponse {
    const { max, windowMs, slot, used, returned, kept, need, want, added } = request
    const nowMs = Math.floor(this.#nowMs())
    this.#sweep(nowMs)
    const { widthMs, ahead } = bucketsOf(windowMs)
    const current = Math.ceil(nowMs / widthMs)
    const last = current + ahead
    const amounts = new Map<number, number>()
    const add = (at: number, amount: number): void => void amounts.set(at, (amounts.get(at) ?? 0) + amount)
    const addUnlessOver = (at: number, amount: number): void => {
      if (at * widthMs + windowMs > nowMs) add(at, amount)
    }
    const key = `${windowMs} ${name} ${subject}`
    for (const [at, amount] of this.#windows.get(key)?.amounts ?? [])
      addUnlessOver(Math.min(at, last), amount)
    add(slot, -Math.min(amounts.get(slot) ?? 0, used + returned + kept))
    add(current, used)
    for (const [agoMs, amount] of added) addUnlessOver(Math.ceil((nowMs - agoMs) / widthMs), amount)
    let sum = 0
    for (const amount of amounts.values()) sum += amount
    const free = Math.max(0, max - kept - sum)
    const granted = Math.min(free, Math.max(need, Math.min(want, Math.floor(free / (4 * nodes)))))
    add(last, kept + granted)
    const present = [...amounts].filter(([, amount]) => amount > 0).toSorted(([a], [b]) => a - b)
    if (present.length === 0) this.#windows.delete(key)
    else this.#windows.set(key, { amounts: new Map(present), expiresMs: (last + 1) * widthMs + windowMs })
    return { nowMs, version: 0, granted, slot: last, amounts: present }
  }

  #sweep(nowMs: number): void {
    if (nowMs - this.#sweptMs < SWEEP_MS) return
    this.#sweptMs = nowMs
    for (const [key, { expiresMs }] of this.#windows) if (expiresMs <= nowMs) this.#windows.delete(key)
  }
}
