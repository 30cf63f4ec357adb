import { Worker } from 'node:worker_threads'
import type { PoolOwner } from '../../limits/fair-pool.ts'
import { FairQueue } from '../../limits/fair-queue.ts'
import { MemoryAllocation, type RequestMemory } from '../../limits/request-memory.ts'
import type { HelperThreads } from '../helper-threads.ts'
import { bodyFor, type GivenBody, mayBeKept, type WantedBody } from './answer-bodies.ts'

/** Answers up to this size are read where they are, in a millisecond or two. */
const MAX_INLINE_BYTES = 131_072
/**
 * Memory for each byte of an answer while it is read: the copy for the thread, and what the thread returns. What it
 * parses has a limit of its own.
 */
const MEMORY_PER_BYTE = 2
/** How long one may take; even large answers take a few hundred milliseconds. */
const TIMEOUT_MS = 20_000
/** If this many wait, further ones are given up. */
const MAX_WAITING = 1_000
/** Idle time, in milliseconds, after which the thread is ended. */
const IDLE_MS = 60_000
/** Heap of the thread: several times of what it lets an answer take, because to exceed it would end the process. */
const MAX_HEAP_MB = 1_024

/** An answer that is to be read: its bytes in pieces of any size. */
export interface AnswerToRead extends Omit<GivenBody, 'bytes'> {
  readonly pieces: readonly Buffer[]
}

/** A conversion for the thread; without `wanted`, whether the answer may be kept. */
export interface ConversionMessage {
  readonly given: Omit<GivenBody, 'bytes'> & { readonly bytes: Uint8Array<ArrayBuffer> }
  readonly wanted: WantedBody | undefined
}

type Result = boolean | Buffer | undefined

/** A conversion that the thread is working on. */
interface Running {
  readonly worker: Worker
  readonly resolve: (result: Result) => void
}

/** Services that conversions need. */
interface AnswerConversionsDependencies {
  readonly memory: RequestMemory
  readonly threads: Pick<HelperThreads, 'start'>
  /** How long one may take, in milliseconds. */
  readonly timeoutMs?: number
}

/**
 * Reads whole answers, to decide whether they may be kept and to write them in another form. Each is counted in the
 * share of a client. Large ones are read in a thread of their own, in turns of the clients; the one that is read may
 * exceed its share.
 */
export class AnswerConversions {
  readonly #memory: RequestMemory
  readonly #threads: AnswerConversionsDependencies['threads']
  readonly #turns = new FairQueue(1, MAX_WAITING)
  readonly #timeoutMs: number
  #worker: Worker | undefined
  #running: Running | undefined
  #idle: NodeJS.Timeout | undefined
  #isClosed = false

  constructor({ memory, threads, timeoutMs = TIMEOUT_MS }: AnswerConversionsDependencies) {
    this.#timeoutMs = timeoutMs
    this.#memory = memory
    this.#threads = threads
  }

  /** Whether an answer may be kept; false also if there is no memory or no thread to read it. */
  async mayBeKept(answer: AnswerToRead, owner: PoolOwner): Promise<boolean> {
    return (await this.#convert(answer, undefined, owner)) === true
  }

  /** The answer in the form that a client wants; undefined also if there is no memory or no thread to make it. */
  async bodyFor(answer: AnswerToRead, wanted: WantedBody, owner: PoolOwner): Promise<Buffer | undefined> {
    const body = await this.#convert(answer, wanted, owner)
    return Buffer.isBuffer(body) ? body : undefined
  }

  /** Ends the thread, and what it is working on. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#idle)
    await this.#end(this.#worker)
  }

  async #convert(answer: AnswerToRead, wanted: WantedBody | undefined, owner: PoolOwner): Promise<Result> {
    const size = answer.pieces.reduce((sum, { length }) => sum + length, 0)
    const allocation = new MemoryAllocation(owner)
    try {
      if (size <= MAX_INLINE_BYTES) {
        const isTaken = this.#memory.take(allocation, MEMORY_PER_BYTE * Math.max(1, size))
        return isTaken ? convertHere(answer, wanted) : undefined
      }
      return await this.#turns.run(String(owner.client), tooManyWait, async () => {
        // No other has this turn, so that there is nothing to wait for.
        await this.#memory.takeInTurn(allocation, MEMORY_PER_BYTE * size, 'shared answers', () => {})
        return this.#convertInThread(answer, wanted, size)
      })
    } catch {
      return undefined
    } finally {
      this.#memory.give(allocation, allocation.bytes)
    }
  }

  async #convertInThread(
    { pieces, ...given }: AnswerToRead,
    wanted: WantedBody | undefined,
    size: number,
  ): Promise<Result> {
    clearTimeout(this.#idle)
    const worker = (this.#worker ??= this.#start())
    if (!worker) return undefined
    const timeout = setTimeout(() => void this.#end(worker), this.#timeoutMs).unref()
    try {
      return await new Promise<Result>((resolve) => {
        this.#running = { worker, resolve }
        const bytes = joinedIn(new Uint8Array(size), pieces)
        worker.postMessage({ given: { ...given, bytes }, wanted } satisfies ConversionMessage, [bytes.buffer])
      })
    } finally {
      clearTimeout(timeout)
      this.#idle = setTimeout(() => void this.#end(this.#worker), IDLE_MS).unref()
    }
  }

  async #end(worker: Worker | undefined): Promise<void> {
    if (this.#worker === worker) this.#worker = undefined
    await worker?.terminate()
  }

  #start(): Worker | undefined {
    if (this.#isClosed) return undefined
    const extension = import.meta.url.slice(import.meta.url.lastIndexOf('.'))
    const url = new URL(`./answer-conversions-worker${extension}`, import.meta.url)
    const name = 'answers'
    const make = (): Worker =>
      new Worker(url, { name, resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB } })
    const worker = this.#threads.start(name, make, () => {
      this.#worker ??= this.#start()
      this.#idle = setTimeout(() => void this.#end(this.#worker), IDLE_MS).unref()
    })
    if (!worker) return undefined
    worker.unref()
    const settle = (result: Result): void => {
      const running = this.#running
      if (running?.worker !== worker) return
      this.#running = undefined
      running.resolve(result)
    }
    worker.on('message', (result: boolean | Uint8Array<ArrayBuffer> | undefined) =>
      settle(result instanceof Uint8Array ? Buffer.from(result.buffer) : result),
    )
    worker.on('error', () => {})
    worker.on('exit', () => {
      if (this.#worker === worker) this.#worker = undefined
      settle(undefined)
    })
    return worker
  }
}

function tooManyWait(): Error {
  return new Error('too many answers wait to be read')
}

function convertHere({ pieces, ...given }: AnswerToRead, wanted: WantedBody | undefined): Result {
  const answer = { ...given, bytes: Buffer.concat(pieces) }
  return wanted ? bodyFor(answer, wanted) : mayBeKept(answer)
}

function joinedIn(bytes: Uint8Array<ArrayBuffer>, pieces: readonly Buffer[]): Uint8Array<ArrayBuffer> {
  let at = 0
  for (const piece of pieces) {
    bytes.set(piece, at)
    at += piece.length
  }
  return bytes
}
