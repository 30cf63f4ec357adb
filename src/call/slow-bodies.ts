import { DenseSet } from '../domain/dense-set.ts'
import { GatewayError } from '../errors.ts'
import type { RequestMemory, MemoryAllocation } from '../limits/request-memory.ts'

/** Interval between two samples, in milliseconds. */
const SAMPLE_MS = 1_000
/** Number of samples before a body can count as too slow. */
const GRACE_SAMPLES = 10
/** Minimum bytes that must arrive per sample, after the first `GRACE_SAMPLES` samples. */
const MIN_BYTES_PER_SAMPLE = 1_024
/**
 * A body has stalled if its bytes in memory are more than this many times the bytes that arrived in the last
 * two intervals.
 */
const STALL_RATIO = 8

/** What a body arrives on. */
export interface BodySource {
  /** Bytes that its connection has received. */
  readonly bytesRead: number
  /** Whether the gateway has paused reading, so that nothing can arrive. */
  readonly isPaused: boolean
}

/** A body that is being read. */
export class PendingBody {
  readonly allocation: MemoryAllocation
  readonly refuse: (error: GatewayError) => void
  /** Position in the set of bodies that `SlowBodies` watches; only this set changes it. */
  index = -1
  readonly #source: BodySource
  /** Bytes that the connection had received before the body. */
  readonly #receivedBefore: number
  readonly #progress: () => number
  /** Samples during which the gateway read. */
  #samples = 0
  /** Bytes received up to the last sample. */
  #progressAtSample = 0
  /** Bytes received up to the sample before the last one. */
  #progressOneEarlier = 0

  /**
   * `refuse` must release the body's memory before it returns. `progress` returns the number of bytes
   * received; a part of them may be elsewhere than in memory.
   */
  constructor(
    source: BodySource,
    allocation: MemoryAllocation,
    refuse: (error: GatewayError) => void,
    progress = (): number => allocation.bytes,
  ) {
    this.#source = source
    this.#receivedBefore = source.bytesRead
    this.#progress = progress
    this.allocation = allocation
    this.refuse = refuse
  }

  /**
   * Bytes in memory, divided by the bytes received since the last sample but one: roughly the seconds that
   * the body would take at its present speed.
   */
  get stallRatio(): number {
    return this.allocation.bytes / Math.max(1, this.#progress() - this.#progressOneEarlier)
  }

  /** Takes a sample: records how many bytes have been received. */
  sample(): void {
    if (!this.#source.isPaused) this.#samples += 1
    this.#progressOneEarlier = this.#progressAtSample
    this.#progressAtSample = this.#progress()
  }

  /** Whether the body arrives too slowly. */
  get isTooSlow(): boolean {
    const received = this.#source.bytesRead - this.#receivedBefore
    return this.#samples > GRACE_SAMPLES + received / MIN_BYTES_PER_SAMPLE
  }
}

/**
 * Refuses bodies that arrive at less than 1 KiB per second from ten seconds after their beginning, because
 * they would occupy a connection and a slot for nothing. A stalled body is refused immediately if others need
 * its memory.
 */
export class SlowBodies {
  readonly #pending = new DenseSet<PendingBody>()
  #timer: NodeJS.Timeout | undefined

  /**
   * Watches a body, and refuses it with `request_timeout` if it is too slow. The returned function stops
   * watching.
   */
  watch(body: PendingBody): () => void {
    this.#pending.add(body)
    this.#timer ??= setInterval(() => this.#sampleAll(), SAMPLE_MS).unref()
    return () => this.#pending.delete(body)
  }

  /**
   * Refuses the stalled body that progresses least for the memory it occupies, so that `requester` gets that
   * memory. The body must be one of the same client, or of a client that holds at least as much memory.
   * Returns false if there is no such body, or if `requester` has stalled more.
   */
  refuseStalled(requester: Pick<PendingBody, 'allocation' | 'stallRatio'>, memory: RequestMemory): boolean {
    const { client } = requester.allocation.owner
    const own = memory.usedBy(client)
    let worst: PendingBody | undefined
    let max = Math.max(STALL_RATIO, requester.stallRatio)
    for (const body of this.#pending) {
      const { stallRatio, allocation } = body
      if (stallRatio <= max) continue
      const other = allocation.owner.client
      if (other !== client && memory.usedBy(other) < own) continue
      worst = body
      max = stallRatio
    }
    worst?.refuse(stalled())
    return worst !== undefined
  }

  #sampleAll(): void {
    if (this.#pending.size === 0) {
      clearInterval(this.#timer)
      this.#timer = undefined
    }
    for (const body of this.#pending) {
      body.sample()
      if (body.isTooSlow) body.refuse(tooSlow())
    }
  }
}

function tooSlow(): GatewayError {
  return new GatewayError(
    'request_timeout',
    `the request body came more slowly than ${MIN_BYTES_PER_SAMPLE} bytes a second`,
  )
}

function stalled(): GatewayError {
  return new GatewayError(
    'request_timeout',
    'the request body stalled while others needed the memory that it held; send it without pauses',
  )
}
