import { Worker } from 'node:worker_threads'
import type { PoolShareOwner } from '../../limits/fair-pool.ts'
import { FairQueue } from '../../limits/fair-queue.ts'
import { MemoryAllocation, type RequestMemory } from '../../limits/request-memory.ts'
import type { HelperThreads } from '../helper-threads.ts'
import { convertBody, type ProducedBody, isKeepableAnswer, type RequestedBodyForm } from './answer-bodies.ts'

/** Answers up to this number of bytes are read in the main thread, in a millisecond or two. */
const MAX_INLINE_BYTES = 131_072
/**
 * Bytes of memory for each byte of an answer while it is read: the copy for the thread, and the thread's
 * result. Parsed values have a separate limit in the thread.
 */
const MEMORY_PER_BYTE = 2
/** Timeout of a conversion in milliseconds. Even large answers take only a few hundred milliseconds. */
const TIMEOUT_MS = 20_000
/** Maximum number of answers that wait to be read; further answers are not read. */
const MAX_WAITING = 1_000
/** Idle time, in milliseconds, after which the thread is ended. */
const IDLE_MS = 60_000
/**
 * Maximum heap of the thread, in MiB. It is several times the heap that one answer may take, because
 * exceeding it would end the process.
 */
const MAX_HEAP_MB = 1_024

/** An answer that is to be read: its bytes in pieces of any size. */
export interface AnswerToRead extends Omit<ProducedBody, 'bytes'> {
  readonly pieces: readonly Buffer[]
}

/**
 * An answer for the thread, to be converted to the form `wanted`; if that is undefined, the thread checks
 * whether the answer may be kept.
 */
export interface ConversionMessage {
  readonly given: Omit<ProducedBody, 'bytes'> & { readonly bytes: Uint8Array<ArrayBuffer> }
  readonly wanted: RequestedBodyForm | undefined
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
  /** Timeout of a conversion, in milliseconds. */
  readonly timeoutMs?: number
}

/**
 * Reads whole answers, to decide whether they may be kept, or to convert them to another form. Their memory
 * is counted in the share of a client. A separate thread reads large answers one at a time, in fair turns of
 * the clients; the answer that has its turn may exceed its client's share.
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
  async mayBeKept(answer: AnswerToRead, owner: PoolShareOwner): Promise<boolean> {
    return (await this.#convert(answer, undefined, owner)) === true
  }

  /** The answer in the form that a client wants; undefined also if there is no memory or no thread to make it. */
  async bodyFor(
    answer: AnswerToRead,
    wanted: RequestedBodyForm,
    owner: PoolShareOwner,
  ): Promise<Buffer | undefined> {
    const body = await this.#convert(answer, wanted, owner)
    return Buffer.isBuffer(body) ? body : undefined
  }

  /** Ends the thread, and with it the conversion that is running. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#idle)
    await this.#end(this.#worker)
  }

  async #convert(
    answer: AnswerToRead,
    wanted: RequestedBodyForm | undefined,
    owner: PoolShareOwner,
  ): Promise<Result> {
    const size = answer.pieces.reduce((sum, { length }) => sum + length, 0)
    const allocation = new MemoryAllocation(owner)
    try {
      if (size <= MAX_INLINE_BYTES) {
        const isTaken = this.#memory.take(allocation, MEMORY_PER_BYTE * Math.max(1, size))
        return isTaken ? convertHere(answer, wanted) : undefined
      }
      return await this.#turns.run(String(owner.client), tooManyWait, async () => {
        // Only one answer has its turn at a time, so memory is taken without waiting.
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
    wanted: RequestedBodyForm | undefined,
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

function convertHere({ pieces, ...given }: AnswerToRead, wanted: RequestedBodyForm | undefined): Result {
  const answer = { ...given, bytes: Buffer.concat(pieces) }
  return wanted ? convertBody(answer, wanted) : isKeepableAnswer(answer)
}

function joinedIn(bytes: Uint8Array<ArrayBuffer>, pieces: readonly Buffer[]): Uint8Array<ArrayBuffer> {
  let at = 0
  for (const piece of pieces) {
    bytes.set(piece, at)
    at += piece.length
  }
  return bytes
}
