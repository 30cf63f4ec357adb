import type { EventLoop } from '../../src/limits/event-loop.ts'
import type { Overload } from '../../src/limits/overload.ts'

/** When calls arrive, and their cost in milliseconds of work. */
export interface Traffic {
  /** The number of calls that arrive in a millisecond of the virtual clock. */
  readonly callsPerMs: (atMs: number) => number
  /** How long calls arrive, in milliseconds. */
  readonly durationMs: number
  /** The cost of reading a request's headers. */
  readonly headMs: number
  readonly refusalMs: number
  /** The cost of sending a call to its upstream. */
  readonly beginMs: number
  /** The cost of each chunk of a response. */
  readonly chunkMs: number | ((atMs: number) => number)
  /** The upstream's latency from the start of a call to the first chunk. */
  readonly upstreamMs: number
  /** The number of chunks of a response; 1 by default. */
  readonly chunks?: number
  readonly chunkIntervalMs?: number
}

/** The result of a simulation. */
export interface Outcome {
  readonly begun: readonly Wait[]
  readonly refused: readonly Wait[]
  /** The number of calls whose response is complete. */
  readonly served: number
  /** The duration of the simulation. */
  readonly endMs: number
}

/** How long a call waited, from its sending until it began or was refused. */
export interface Wait {
  readonly sentMs: number
  readonly ms: number
}

/** The next chunk of a response. */
interface Chunk {
  readonly sentMs: number
  readonly dueMs: number
  readonly chunksLeft: number
}

/** The cost of a turn of the loop. */
const TURN_MS = 0.01
/** The resolution of arrivals. */
const STEP_MS = 0.5
/** Milliseconds that calls in flight have after the last arrival. */
const DRAIN_TIMEOUT_MS = 120_000

/**
 * An event loop with a virtual clock. Its turns are those of libuv: timers, input that arrived before the
 * turn, then callbacks after input. Other programs share the core: work takes `slowdown` times as long.
 */
export class SimulatedLoop implements EventLoop {
  readonly #slowdown: number
  #nowMs = 0
  #idleMs = 0
  #afterInput: (() => void)[] = []
  #timers: { readonly dueMs: number; readonly callback: () => void }[] = []

  constructor(slowdown = 1) {
    this.#slowdown = slowdown
  }

  readonly nowMs = (): number => this.#nowMs
  readonly idleMs = (): number => this.#idleMs
  readonly afterInput = (callback: () => void): void => void this.#afterInput.push(callback)
  readonly afterMs = (ms: number, callback: () => void): void =>
    void this.#timers.push({ dueMs: this.#nowMs + ms, callback })

  /** Advances the clock by time in which the thread works. */
  work(ms: number): void {
    this.#nowMs += ms * this.#slowdown
  }

  /** Advances the clock by time in which the whole machine is paused. */
  stall(ms: number): void {
    this.#nowMs += ms
  }

  /** Simulates calls until all admitted ones have ended. */
  run(overload: Overload, traffic: Traffic): Outcome {
    const startMs = this.#nowMs
    const { chunkMs } = traffic
    const sent = arrivals(traffic, startMs)
    const begun: Wait[] = []
    const refused: Wait[] = []
    const chunks = new ChunkQueue()
    let next = 0
    let served = 0
    const begin = (sentMs: number): true => {
      begun.push({ sentMs: sentMs - startMs, ms: this.#nowMs - sentMs })
      this.work(traffic.beginMs)
      chunks.add({ sentMs, dueMs: this.#nowMs + traffic.upstreamMs, chunksLeft: traffic.chunks ?? 1 })
      return true
    }
    const arrive = (sentMs: number): void => {
      this.work(traffic.headMs)
      const nowMs = this.#nowMs
      if (overload.refusal(nowMs, 0, 1)) {
        this.work(traffic.refusalMs)
        refused.push({ sentMs: sentMs - startMs, ms: this.#nowMs - sentMs })
      } else if (overload.tryBegin()) begin(sentMs)
      else overload.enqueue({ arrivedMs: nowMs, begin: () => begin(sentMs) })
    }
    const send = ({ sentMs, chunksLeft }: Chunk): void => {
      this.work(typeof chunkMs === 'number' ? chunkMs : chunkMs(this.#nowMs - startMs))
      if (chunksLeft > 1) {
        const dueMs = this.#nowMs + (traffic.chunkIntervalMs ?? 0)
        return chunks.add({ sentMs, dueMs, chunksLeft: chunksLeft - 1 })
      }
      served += 1
      overload.callEnded()
    }
    while (this.#nowMs < startMs + traffic.durationMs + DRAIN_TIMEOUT_MS) {
      const turnMs = this.#nowMs
      let steps = this.#runTimers(turnMs)
      for (; (sent[next] ?? Number.POSITIVE_INFINITY) <= turnMs; steps++) arrive(sent[next++] as number)
      for (let chunk: Chunk | undefined; (chunk = chunks.takeUntil(turnMs)); steps++) send(chunk)
      for (const callback of this.#afterInput.splice(0)) {
        callback()
        steps += 1
      }
      this.work(TURN_MS)
      if (steps > 0) continue
      const timers = this.#timers.map(({ dueMs }) => dueMs)
      const nextMs = Math.min(sent[next] ?? Number.POSITIVE_INFINITY, chunks.nextMs, ...timers)
      if (nextMs === Number.POSITIVE_INFINITY) break
      this.idle(nextMs - this.#nowMs)
    }
    return { begun, refused, served, endMs: this.#nowMs - startMs }
  }

  /** Advances the clock by idle time. */
  idle(ms: number): void {
    if (ms <= 0) return
    this.#nowMs += ms
    this.#idleMs += ms
  }

  #runTimers(turnMs: number): number {
    const due = this.#timers.filter(({ dueMs }) => dueMs <= turnMs)
    if (due.length > 0) this.#timers = this.#timers.filter(({ dueMs }) => dueMs > turnMs)
    for (const { callback } of due) callback()
    return due.length
  }
}

/** The times at which calls are sent. */
function arrivals({ callsPerMs, durationMs }: Traffic, startMs: number): number[] {
  const sent: number[] = []
  let calls = 0
  for (let atMs = 0; atMs < durationMs; atMs += STEP_MS) {
    for (calls += callsPerMs(atMs) * STEP_MS; calls >= 1; calls -= 1) sent.push(startMs + atMs)
  }
  return sent
}

/** A queue of chunks, ordered by the time at which they are due. */
class ChunkQueue {
  readonly #chunks: Chunk[] = []
  #first = 0

  get nextMs(): number {
    return this.#chunks[this.#first]?.dueMs ?? Number.POSITIVE_INFINITY
  }

  add(chunk: Chunk): void {
    let [low, high] = [this.#first, this.#chunks.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#chunks[middle] as Chunk).dueMs <= chunk.dueMs) low = middle + 1
      else high = middle
    }
    this.#chunks.splice(low, 0, chunk)
  }

  takeUntil(ms: number): Chunk | undefined {
    if (this.nextMs > ms) return undefined
    return this.#chunks[this.#first++]
  }
}
