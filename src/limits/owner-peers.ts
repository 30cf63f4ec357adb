import type { Link } from '../ipc/link.ts'
import type { CountedLimit } from './rate-counter.ts'
import {
  type PermitPeers,
  type SlotPeers,
  type SlotReport,
  type PermitRequest,
  type PermitResponse,
  bucketsOf,
} from './peers.ts'

/**
 * The other workers of this machine, with which limits are shared. The main process keeps the counts. It is
 * always reachable, because workers end when it ends.
 */
export class OwnerPeers implements PermitPeers, SlotPeers {
  readonly isReachable = true
  readonly isRefilling = false
  readonly generation = 'owner'
  readonly refreshMs = 20_000
  readonly #link: Link
  readonly #count: () => number

  /** `count` returns the number of workers. */
  constructor(link: Link, count: () => number) {
    this.#link = link
    this.#count = count
  }

  get nodes(): number {
    return Math.max(1, this.#count())
  }

  exchangePermits(
    { name, subject, max, windowMs }: CountedLimit,
    request: PermitRequest,
  ): Promise<PermitResponse | 'stale'> {
    return this.#link.request('permits', [{ name, subject, max, windowMs }, request])
  }

  exchangeSlots(subject: string, report: SlotReport): Promise<number | 'stale'> {
    return this.#link.request('slots', [subject, report])
  }
}

/** Milliseconds between removals of expired windows. */
const SWEEP_MS = 10_000

/** How much of a limit a user or key has used: amounts by time bucket, and when the last of them expires. */
interface Window {
  readonly amounts: Map<number, number>
  expiresMs: number
}

/**
 * Rate limits that several worker processes share, in the memory of the main process. The rules are those of
 * `PERMIT_SCRIPT`, which stores such limits in Redis; but unlike Redis, this memory cannot lose counts, so
 * there are no generations.
 */
export class PermitsOfWorkers {
  readonly #windows = new Map<string, Window>()
  readonly #nowMs: () => number
  #sweptMs = 0

  /** `nowMs` returns milliseconds of a monotonic clock. */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs
  }

  /** Answers a request of one of `nodes` processes, and updates the window. */
  exchange({ name, subject }: CountedLimit, request: PermitRequest, nodes: number): PermitResponse {
    const { max, windowMs, bucket, used, returned, kept, need, want, added } = request
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
    add(bucket, -Math.min(amounts.get(bucket) ?? 0, used + returned + kept))
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
    return { nowMs, version: 0, granted, bucket: last, amounts: present }
  }

  #sweep(nowMs: number): void {
    if (nowMs - this.#sweptMs < SWEEP_MS) return
    this.#sweptMs = nowMs
    for (const [key, { expiresMs }] of this.#windows) if (expiresMs <= nowMs) this.#windows.delete(key)
  }
}

/**
 * Numbers of running calls of several worker processes, in the memory of the main process. The rules are
 * those of `SLOT_SCRIPT`, which counts running calls in Redis; but slots of a process that has ended are
 * released at once.
 */
export class SlotsOfWorkers {
  readonly #subjects = new Map<string, Map<string, number>>()

  /**
   * Updates the number of slots that a process holds, and takes more for it if they are free. Returns how
   * many were taken.
   */
  exchange(node: string, subject: string, { held, want, max }: SlotReport): number {
    const slots = this.#subjects.get(subject) ?? new Map<string, number>()
    let others = 0
    for (const [name, count] of slots) if (name !== node) others += count
    const granted = Math.max(0, Math.min(want, max - others - held))
    if (held + granted > 0) this.#subjects.set(subject, slots.set(node, held + granted))
    else this.#remove(subject, slots, node)
    return granted
  }

  /** Releases all slots of a process. */
  drop(node: string): void {
    for (const [subject, slots] of this.#subjects) this.#remove(subject, slots, node)
  }

  #remove(subject: string, slots: Map<string, number>, node: string): void {
    slots.delete(node)
    if (slots.size === 0) this.#subjects.delete(subject)
  }
}
