import { DenseSet } from '../domain/dense-set.ts'
import { GatewayError } from '../errors.ts'
import type { Request } from '../server/request.ts'
import type { BodyMemory, BodyAllocation } from './body-memory.ts'

/** How often bodies are looked at. */
const SAMPLE_MS = 1_000
/** Looks before a body may be late, and the bytes that put that off by one more. */
const GRACE_SAMPLES = 10
const MIN_BYTES_PER_SAMPLE = 1_024
/** A body has stalled where it holds more than so many times what came since the look before the last. */
const STALL_RATIO = 8

/** A body that is being read. */
export class PendingBody {
  readonly allocation: BodyAllocation
  readonly refuse: (error: GatewayError) => void
  /** Changed by the roster alone. */
  index = -1
  readonly #request: Request
  /** Bytes that had come over its connection when it began. */
  readonly #receivedBefore: number
  #samples = 0
  /** Bytes that it held at the last look, and at the one before. */
  #heldAtSample = 0
  #heldOneEarlier = 0

  /** `refuse` gives back what it holds before it returns. */
  constructor(request: Request, holding: BodyAllocation, refuse: (error: GatewayError) => void) {
    this.#request = request
    this.#receivedBefore = request.bytesRead
    this.allocation = holding
    this.refuse = refuse
  }

  /** How many times what came lately it holds: some seconds at the pace that it has. */
  get stallRatio(): number {
    const { bytes } = this.allocation
    return bytes / Math.max(1, bytes - this.#heldOneEarlier)
  }

  /** Takes note of how far it has come. */
  sample(): void {
    this.#samples += 1
    this.#heldOneEarlier = this.#heldAtSample
    this.#heldAtSample = this.allocation.bytes
  }

  /** Whether it comes more slowly than it may. */
  get isTooSlow(): boolean {
    const received = this.#request.bytesRead - this.#receivedBefore
    return this.#samples > GRACE_SAMPLES + received / MIN_BYTES_PER_SAMPLE
  }
}

/**
 * Refuses bodies that come more slowly than 1 KiB a second, ten seconds after they began: they would hold a
 * connection and a slot for nothing. All of them are looked at together, once a second. One that has stalled
 * is refused at once where others need the memory that it holds.
 */
export class SlowBodies {
  readonly #pending = new DenseSet<PendingBody>()
  #timer: NodeJS.Timeout | undefined

  /**
   * Watches a body until what is returned is called; one that is too slow is refused with `request_timeout`.
   */
  watch(reading: PendingBody): () => void {
    this.#pending.add(reading)
    this.#timer ??= setInterval(() => this.#sampleAll(), SAMPLE_MS).unref()
    return () => this.#pending.delete(reading)
  }

  /**
   * Refuses the stalled body that made the least progress for what it holds, to make room for another: one of
   * the same client, or of a client that holds at least as much. False where there is none, or where the
   * asking body has stalled more.
   */
  refuseStalled(asking: PendingBody, room: BodyMemory): boolean {
    const { client } = asking.allocation
    const own = room.heldBy(client)
    let worst: PendingBody | undefined
    let most = Math.max(STALL_RATIO, asking.stallRatio)
    for (const reading of this.#pending) {
      const { stallRatio: stall, allocation: holding } = reading
      if (stall <= most) continue
      if (holding.client !== client && room.heldBy(holding.client) < own) continue
      worst = reading
      most = stall
    }
    worst?.refuse(stalled())
    return worst !== undefined
  }

  #sampleAll(): void {
    if (this.#pending.size === 0) {
      clearInterval(this.#timer)
      this.#timer = undefined
    }
    for (const reading of this.#pending) {
      reading.sample()
      if (reading.isTooSlow) reading.refuse(tooSlow())
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
