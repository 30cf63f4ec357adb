import type { EventLoop } from '../../src/limits/event-loop.ts'
import type { Overload } from '../../src/limits/overload.ts'

/** What calls cost the thread, in milliseconds of work, and when they come. */
export interface Traffic {
  /** Calls that come in each millisecond of the virtual clock. */
  readonly perMs: (atMs: number) => number
  /** How long they come for. */
  readonly forMs: number
  /** Reading a head, saying a refusal, sending a call to its upstream, and each part of its answer. */
  readonly headMs: number
  readonly refusalMs: number
  readonly beginMs: number
  readonly partMs: number | ((atMs: number) => number)
  /** From a call's beginning to the first part of its answer, and from one part to the next. */
  readonly upstreamMs: number
  readonly parts?: number
  readonly paceMs?: number
}

/**
 * What became of it: the waits of each kind in milliseconds from when a call was sent, by the time it was
 * sent at.
 */
export interface Outcome {
  readonly began: readonly Wait[]
  readonly refused: readonly Wait[]
  /** Calls whose answer ended, and when the last did. */
  readonly served: number
  readonly endMs: number
}

export interface Wait {
  readonly sentMs: number
  readonly ms: number
}

interface Due {
  readonly sentMs: number
  readonly dueMs: number
  readonly partsLeft: number
}

const TURN_MS = 0.01
const STEP_MS = 0.5
/** Answers and calls under way at the end of the traffic may take so much longer. */
const PATIENCE_MS = 120_000

/**
 * An event loop of a virtual clock, with turns as libuv makes them: timers, what has come on connections by
 * the beginning of the turn, and what waits for the end of that. Other programs take their share of the core:
 * work takes `stretch` times as long as it is.
 */
export class SimulatedLoop implements EventLoop {
  readonly #stretch: number
  #nowMs = 0
  #idleMs = 0
  #afterInput: (() => void)[] = []
  #timers: { readonly dueMs: number; readonly callback: () => void }[] = []

  constructor(stretch = 1) {
    this.#stretch = stretch
  }

  readonly nowMs = (): number => this.#nowMs
  readonly idleMs = (): number => this.#idleMs
  readonly afterInput = (callback: () => void): void => void this.#afterInput.push(callback)
  readonly afterMs = (ms: number, callback: () => void): void =>
    void this.#timers.push({ dueMs: this.#nowMs + ms, callback })

  /** Time that the thread works. */
  work(ms: number): void {
    this.#nowMs += ms * this.#stretch
  }

  /** Time that the machine gives to others. */
  stall(ms: number): void {
    this.#nowMs += ms
  }

  /** Has calls come to `overload`, until all that were let in are answered. */
  run(overload: Overload, traffic: Traffic): Outcome {
    const startMs = this.#nowMs
    const { partMs } = traffic
    const sent = arrivals(traffic, startMs)
    const began: Wait[] = []
    const refused: Wait[] = []
    const answers = new Agenda()
    let next = 0
    let served = 0
    const begin = (sentMs: number): true => {
      began.push({ sentMs: sentMs - startMs, ms: this.#nowMs - sentMs })
      this.work(traffic.beginMs)
      answers.add({ sentMs, dueMs: this.#nowMs + traffic.upstreamMs, partsLeft: traffic.parts ?? 1 })
      return true
    }
    const arrive = (sentMs: number): void => {
      this.work(traffic.headMs)
      const nowMs = this.#nowMs
      if (overload.refusal(nowMs, 0, 1)) {
        this.work(traffic.refusalMs)
        refused.push({ sentMs: sentMs - startMs, ms: this.#nowMs - sentMs })
      } else if (overload.begins()) begin(sentMs)
      else overload.wait({ sinceMs: nowMs, begin: () => begin(sentMs) })
    }
    const answer = ({ sentMs, partsLeft }: Due): void => {
      this.work(typeof partMs === 'number' ? partMs : partMs(this.#nowMs - startMs))
      if (partsLeft > 1)
        return answers.add({ sentMs, dueMs: this.#nowMs + (traffic.paceMs ?? 0), partsLeft: partsLeft - 1 })
      served += 1
      overload.ended()
    }
    while (this.#nowMs < startMs + traffic.forMs + PATIENCE_MS) {
      const turnMs = this.#nowMs
      let steps = this.#ringTimers(turnMs)
      for (; (sent[next] ?? Number.POSITIVE_INFINITY) <= turnMs; steps++) arrive(sent[next++] as number)
      for (let due: Due | undefined; (due = answers.takeUntil(turnMs)); steps++) answer(due)
      for (const callback of this.#afterInput.splice(0)) {
        callback()
        steps += 1
      }
      this.work(TURN_MS)
      if (steps > 0) continue
      const timers = this.#timers.map(({ dueMs }) => dueMs)
      const nextMs = Math.min(sent[next] ?? Number.POSITIVE_INFINITY, answers.nextMs, ...timers)
      if (nextMs === Number.POSITIVE_INFINITY) break
      this.rest(nextMs - this.#nowMs)
    }
    return { began, refused, served, endMs: this.#nowMs - startMs }
  }

  /** Time with nothing to do. */
  rest(ms: number): void {
    if (ms <= 0) return
    this.#nowMs += ms
    this.#idleMs += ms
  }

  #ringTimers(turnMs: number): number {
    const due = this.#timers.filter(({ dueMs }) => dueMs <= turnMs)
    if (due.length > 0) this.#timers = this.#timers.filter(({ dueMs }) => dueMs > turnMs)
    for (const { callback } of due) callback()
    return due.length
  }
}

function arrivals({ perMs, forMs }: Traffic, startMs: number): number[] {
  const sent: number[] = []
  let part = 0
  for (let atMs = 0; atMs < forMs; atMs += STEP_MS) {
    for (part += perMs(atMs) * STEP_MS; part >= 1; part -= 1) sent.push(startMs + atMs)
  }
  return sent
}

/** What is due later, the earliest first. */
class Agenda {
  readonly #due: Due[] = []
  #first = 0

  get nextMs(): number {
    return this.#due[this.#first]?.dueMs ?? Number.POSITIVE_INFINITY
  }

  add(due: Due): void {
    let [low, high] = [this.#first, this.#due.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#due[middle] as Due).dueMs <= due.dueMs) low = middle + 1
      else high = middle
    }
    this.#due.splice(low, 0, due)
  }

  takeUntil(ms: number): Due | undefined {
    if (this.nextMs > ms) return undefined
    return this.#due[this.#first++]
  }
}
