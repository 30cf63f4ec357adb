import { GatewayError } from '../errors.ts'
import { MemoryAllocation, type RequestMemory } from './request-memory.ts'

/** Maximum number of a user's database reads that run at the same time; up to `MAX_WAITING` others wait. */
const MAX_RUNNING = 8
const MAX_WAITING = 256
/** Maximum milliseconds for which one read waits in total, for its turn and for memory. */
const WAIT_MS = 10_000

/** The running and waiting reads of one user. */
interface ReadsOfUser {
  running: number
  /** Callbacks of waiting reads, in order of arrival; each is called when the read may begin. */
  readonly waiting: Set<() => void>
}

/**
 * Limits database reads for requests: a few per user at a time, and only within the client's share of memory.
 * Reads that every call needs (accounts, signatures) are not limited.
 */
export class StoreReads {
  readonly #memory: RequestMemory
  readonly #users = new Map<number, ReadsOfUser>()

  constructor(memory: RequestMemory) {
    this.#memory = memory
  }

  /**
   * Starts a read for a user. The memory it takes is added to `body`, the memory of the request, if given.
   */
  of(userId: number, body?: MemoryAllocation): StoreRead {
    return new StoreRead({
      memory: this.#memory,
      allocation: body ?? new MemoryAllocation({ client: userId, key: '' }),
      isOwn: body === undefined,
      enter: (start) => this.#enter(userId, start),
    })
  }

  /**
   * Calls `start` when the user may begin another read. Returns a function that ends the read or the wait for
   * it.
   */
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

/** What a read of the database for one request needs. */
interface StoreReadInputs {
  readonly memory: RequestMemory
  readonly allocation: MemoryAllocation
  /** Whether the read returns the memory at its end; otherwise the request does. */
  readonly isOwn: boolean
  readonly enter: (start: () => void) => () => void
}

/** A read for one request. It lasts until everything that was read has been sent to the client. */
export class StoreRead {
  readonly #inputs: StoreReadInputs
  #began: Promise<void> | undefined
  #leave: (() => void) | undefined
  #isOver = false
  /** Ends the current wait; undefined if there is none. */
  #giveUp: (() => void) | undefined
  #leftMs = WAIT_MS

  /** Called only by `StoreReads`. */
  constructor(inputs: StoreReadInputs) {
    this.#inputs = inputs
  }

  /**
   * Waits until the read may begin; further calls return the same promise. Rejects with `too_many_reads` if
   * that takes too long, or if the read has ended because the client has disconnected.
   */
  begin(): Promise<void> {
    return this.#isOver ? Promise.reject(tooManyReads()) : (this.#began ??= this.#begin())
  }

  /**
   * Takes memory for bytes that are about to be read, and waits for it if necessary. Rejects with
   * `too_many_reads` if that takes too long, or more than `mostMs`. With `turn`, the bytes may exceed the user's share, as
   * `takeInTurn` says.
   */
  async hold(bytes: number, turn?: 'contents', mostMs = WAIT_MS): Promise<void> {
    if (this.#isOver) throw tooManyReads()
    const { memory, allocation } = this.#inputs
    const onWait = (giveUp: () => void): void => void (this.#giveUp = giveUp)
    const ms = Math.min(mostMs, this.#leftMs)
    const taking = turn
      ? memory.takeInTurn(allocation, bytes, turn, onWait, ms)
      : memory.takeInTime(allocation, bytes, ms, onWait)
    if (!(typeof taking === 'boolean' ? taking : await this.#waited(taking))) throw tooManyReads()
    if (!this.#isOver) return
    // The client has disconnected. If that was in the same turn in which the wait ended, `end` has given the bytes back.
    this.give(bytes)
    throw tooManyReads()
  }

  /** Gives bytes back that are not needed any more, unless the end of the read has. */
  give(bytes: number): void {
    const { memory, allocation } = this.#inputs
    memory.give(allocation, Math.min(bytes, allocation.bytes))
  }

  /** Gives turn and memory back until `begin` is called again, unless something of the read waits for them. */
  pause(): void {
    if (!this.#giveUp) this.#release()
  }

  /** Ends the read, or the wait for it. */
  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#giveUp?.()
    this.#release()
  }

  #release(): void {
    this.#leave?.()
    this.#leave = undefined
    this.#began = undefined
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
