import type { Link } from '../../ipc/link.ts'
import { LIFETIMES_MS } from './affinity.ts'

/** What the next call of a session is compared with. It has no text of a prompt. */
export interface PreviousCall {
  /** Start of the call, in Unix milliseconds. */
  readonly atMs: number
  readonly channel: string
  /** Identifies the key of the channel. */
  readonly place: number
  /** The upstream's name of the model, and whether it was served fast. */
  readonly model: string
  /** Short digests; empty where nothing was cached. `messages` covers the first `turns` turns. */
  readonly tools: string
  readonly system: string
  readonly messages: string
  /** Number of turns; -1 if they are not all in the request. */
  readonly turns: number
  /** Index of the longest lifetime that the session has written to a cache. */
  readonly longest: number
  /** Tokens that the call read or wrote, by lifetime. */
  readonly cached: readonly number[]
  /** The provider's id of the answer, if the channel asks about caches; else empty. */
  readonly answerId: string
  /** Whether nothing can have come between this call and the next that is found: no other node served the session unseen. */
  readonly isSure: boolean
}

/** The last call of each session, by the name of the session in rows. */
export interface PreviousCalls {
  /** Whether the calls of all nodes are remembered here. */
  readonly isComplete: boolean
  find(session: string): PreviousCall | undefined | Promise<PreviousCall | undefined>
  /** `most`: maximum number of sessions; beyond it, the one that was remembered longest ago is forgotten. */
  remember(session: string, call: PreviousCall, most: number): void
  close(): Promise<void>
}

/** Calls of this process, forgotten when their caches are. */
export class LocalPreviousCalls implements PreviousCalls {
  /** In the order in which they were remembered. */
  readonly #calls = new Map<string, PreviousCall>()
  readonly #isAlone: () => boolean

  /** `isAlone`: whether no other node serves calls of the same users. */
  constructor(isAlone: () => boolean = () => true) {
    this.#isAlone = isAlone
  }

  get isComplete(): boolean {
    return this.#isAlone()
  }

  /** Number of sessions. */
  get size(): number {
    return this.#calls.size
  }

  find(session: string): PreviousCall | undefined {
    return this.#calls.get(session)
  }

  remember(session: string, call: PreviousCall, most: number): void {
    this.#calls.delete(session)
    this.#calls.set(session, call)
    let removable = MAX_REMOVED
    for (const [oldest, { atMs, longest }] of this.#calls) {
      const isOver = atMs + (LIFETIMES_MS[longest] ?? 0) < call.atMs
      if ((!isOver && this.#calls.size <= most) || removable-- === 0) break
      this.#calls.delete(oldest)
    }
  }

  async close(): Promise<void> {}
}

/** Sessions that one call may displace: two, so that the memory shrinks. */
const MAX_REMOVED = 2

/** Calls of the workers of one machine, which the owner of their database remembers. */
export class OwnerPreviousCalls implements PreviousCalls {
  readonly isComplete = true
  readonly #link: Link

  constructor(link: Link) {
    this.#link = link
  }

  find(session: string): Promise<PreviousCall | undefined> {
    return this.#link.request<PreviousCall | undefined>('find previous', session).catch(() => undefined)
  }

  // The owner reads this before the settlement of the call, which is sent later over the same socket.
  remember(session: string, call: PreviousCall, most: number): void {
    this.#link.send('remember previous', [session, call, most])
  }

  async close(): Promise<void> {}
}

/** Answers the requests of a worker. */
export function answerPreviousCalls(link: Link, calls: LocalPreviousCalls): void {
  link.answer('find previous', (session: string) => calls.find(session))
  link.on('remember previous', ([session, call, most]: [string, PreviousCall, number]) =>
    calls.remember(session, call, most),
  )
}
