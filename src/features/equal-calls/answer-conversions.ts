import { Service, type StartWatch } from '../../ipc/service.ts'
import { startThread } from '../../ipc/start-thread.ts'
import type { PoolShareOwner } from '../../limits/fair-pool.ts'
import { FairQueue } from '../../limits/fair-queue.ts'
import { MemoryAllocation, type RequestMemory } from '../../limits/request-memory.ts'
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

/** The requests of the thread. */
export interface ConversionRequests {
  /**
   * Converts an answer to the form `wanted`; if that is undefined, checks whether the answer may be kept.
   * Undefined if that would take too much memory.
   */
  convert(message: {
    readonly given: Omit<ProducedBody, 'bytes'> & { readonly bytes: Uint8Array<ArrayBuffer> }
    readonly wanted: RequestedBodyForm | undefined
  }): boolean | Uint8Array<ArrayBuffer> | undefined
}

type Result = boolean | Buffer | undefined

/** Services that conversions need. */
interface AnswerConversionsDependencies {
  readonly memory: RequestMemory
  readonly threads: StartWatch
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
  readonly #turns = new FairQueue(1, MAX_WAITING)
  readonly #timeoutMs: number
  readonly #service: Service<ConversionRequests>

  constructor({ memory, threads, timeoutMs = TIMEOUT_MS }: AnswerConversionsDependencies) {
    this.#timeoutMs = timeoutMs
    this.#memory = memory
    this.#service = new Service({
      name: 'answers',
      start: (name) =>
        startThread('./answer-conversions-worker', import.meta.url, { name, maxOldMb: MAX_HEAP_MB }),
      idleMs: IDLE_MS,
      watch: threads,
    })
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
  close(): Promise<void> {
    return this.#service.close()
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
    const bytes = joinedIn(new Uint8Array(size), pieces)
    const result = await this.#service.request(
      'convert',
      { given: { ...given, bytes }, wanted },
      { transfer: [bytes.buffer], timeoutMs: this.#timeoutMs },
    )
    return result instanceof Uint8Array ? Buffer.from(result.buffer) : result
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
