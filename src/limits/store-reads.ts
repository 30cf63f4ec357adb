import { GatewayError } from '../errors.ts'
import { MemoryAllocation, type RequestMemory } from './request-memory.ts'

/** Maximum number of reads of one user that run at once, and that wait. */
const MAX_RUNNING = 8
const MAX_WAITING = 256
/** Maximum total time for which one read waits, for its turn and for memory. */
const WAIT_MS = 10_000

/** Reads of one user. */
interface ReadsOfUser {
  running: number
  /** Callbacks of waiting reads, in order of arrival; each is called when the read may begin. */
  readonly waiting: Set<() => void>
}

/**
 * Reads of the store on behalf of requests: a few per user at a time, each within its client's share of the
 * memory. Lookups that every call needs (accounts, signatures) do not count.
 */
export class StoreReads {
  readonly #memory: RequestMemory
  readonly #users = new Map<number, ReadsOfUser>()

  constructor(memory: RequestMemory) {
    this.#memory = memory
  }

  /** A read of a user, with any key or session. `body` is the memory of the request, to which it adds. */
  of(userId: number, body?: MemoryAllocation): StoreRead {
    return new StoreRead({
      memory: this.#memory,
      allocation: body ?? new MemoryAllocation({ client: userId, key: '' }),
      isOwn: body === undefined,
      enter: (start) => this.#enter(userId, start),
    })
  }

  /** Calls `start` when the user may read; returns a function that ends the read, or its wait. */
  #enter(userId: number, start: () => void): () => void {
    const user = this.#users.get(userId) ?? { running: 0, waiting: new Set() }
    if (user.running >= MAX_RUNNING && user.waiting.size >= MAX_WAITING) throw tooManyReads()
    this.#users.set(userId, user)
    if (user.running < MAX_RUNNING) {
      user.running += 1
      start()
    } else user.waiting.add(start)
    return () => {
      if (user.waiting.delete(start)) return
      const [next] = user.waiting
      if (next) {
        user.waiting.delete(next)
        return next()
      }
      user.running -= 1
      if (user.running === 0) this.#users.delete(userId)
    }
  }
}

/** Dependencies of a read. */
interface StoreReadInputs {
  readonly memory: RequestMemory
  readonly allocation: MemoryAllocation
  /** Whether the memory is returned at the end. */
  readonly isOwn: boolean
  readonly enter: (start: () => void) => () => void
}

/** One read of a request, which lasts until the last byte of what was read has been written to the client. */
export class StoreRead {
  readonly #inputs: StoreReadInputs
  #began: Promise<void> | undefined
  #leave: (() => void) | undefined
  #isOver = false
  /** Ends the current wait. */
  #giveUp: (() => void) | undefined
  #leftMs = WAIT_MS

  /** Called only by `StoreReads`. */
  constructor(inputs: StoreReadInputs) {
    this.#inputs = inputs
  }

  /**
   * Waits for the turn of the read, once. Rejects with `too_many_reads` if that does not come in time, or once
   * the read is over: nothing goes on for a client that has disconnected.
   */
  begin(): Promise<void> {
    return this.#isOver ? Promise.reject(tooManyReads()) : (this.#began ??= this.#begin())
  }

  /**
   * Takes memory for bytes that are about to be read, and waits for it. Rejects with `too_many_reads` if it
   * does not become free in time.
   */
  async hold(bytes: number): Promise<void> {
    if (this.#isOver) throw tooManyReads()
    const { memory, allocation } = this.#inputs
    const taking = memory.takeInTime(allocation, bytes, this.#leftMs, (giveUp) => (this.#giveUp = giveUp))
    if (!(typeof taking === 'boolean' ? taking : await this.#waited(taking))) throw tooManyReads()
    if (!this.#isOver) return
    // The client has disconnected during the wait.
    memory.give(allocation, bytes)
    throw tooManyReads()
  }

  /** Ends the read, or its wait. */
  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#giveUp?.()
    this.#leave?.()
    const { memory, allocation, isOwn } = this.#inputs
    if (isOwn) memory.give(allocation, allocation.bytes)
  }

  async #begin(): Promise<void> {
    if (this.#isOver) throw tooManyReads()
    const { promise, resolve } = Promise.withResolvers<boolean>()
    let isWaiting = true
    this.#leave = this.#inputs.enter(() => {
      isWaiting = false
      resolve(true)
    })
    if (!isWaiting) return
    const timer = setTimeout(() => resolve(false), this.#leftMs).unref()
    this.#giveUp = () => resolve(false)
    const isIn = await this.#waited(promise)
    clearTimeout(timer)
    if (isIn) return
    this.end()
    throw tooManyReads()
  }

  async #waited(waiting: Promise<boolean>): Promise<boolean> {
    const beganMs = performance.now()
    const isIn = await waiting
    this.#giveUp = undefined
    this.#leftMs = Math.max(0, this.#leftMs - (performance.now() - beganMs))
    return isIn
  }
}

function tooManyReads(): GatewayError {
  return new GatewayError(
    'too_many_reads',
    'too much is being read of what the gateway stores for this user; try again',
    { retryAfter: 1 },
  )
}
