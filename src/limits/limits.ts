import { LRUCache } from 'lru-cache'
import type { RateLimit } from '../domain/channel.ts'
import { SlidingWindow, type Verdict } from './sliding-window.ts'

/** Whoever is limited, of all limits together; the one that was quiet for longest is forgotten first. */
const KEPT = 100_000

/** What is counted of a call. */
type Counted = 'requests' | 'tokens'

/** The rate limits of this node, each by its name and by whom it is for. */
export class Limits {
  readonly #windows = new LRUCache<string, SlidingWindow>({ max: KEPT })
  readonly #nowMs: () => number

  /** `nowMs` is a clock that never goes back. */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs
  }

  /** Takes one request off the limit; undefined where it is off. */
  takeRequest(name: string, whom: string | number, { requests, windowMs }: RateLimit): Verdict | undefined {
    if (requests === 0) return undefined
    return this.#window('requests', name, whom).take(this.#nowMs(), 1, requests, windowMs)
  }

  #window(counted: Counted, name: string, whom: string | number): SlidingWindow {
    const key = `${counted} ${name} ${whom}`
    let window = this.#windows.get(key)
    if (!window) this.#windows.set(key, (window = new SlidingWindow()))
    return window
  }
}
