import { DenseSet } from '../domain/dense-set.ts'
import { GatewayError } from '../errors.ts'
import type { Request } from '../server/request.ts'
import type { BodyRoom, Holding } from './body-room.ts'

/** How often bodies are looked at. */
const LOOK_MS = 1_000
/** Looks before a body may be late, and the bytes that put that off by one more. */
const GRACE_LOOKS = 10
const BYTES_A_LOOK = 1_024
/** A body has stalled where it holds more than so many times what came since the look before the last. */
const STALLED = 8

/** A body that is being read. */
export class Reading {
  readonly holding: Holding
  readonly refuse: (error: GatewayError) => void
  /** Changed by the roster alone. */
  place = -1
  readonly #request: Request
  /** Bytes that had come over its connection when it began. */
  readonly #before: number
  #looks = 0
  /** Bytes that it held at the last look, and at the one before. */
  #heldThen = 0
  #heldBefore = 0

  /** `refuse` gives back what it holds before it returns. */
  constructor(request: Request, holding: Holding, refuse: (error: GatewayError) => void) {
    this.#request = request
    this.#before = request.bytesRead
    this.holding = holding
    this.refuse = refuse
  }

  /** How many times what came lately it holds: some seconds at the pace that it has. */
  get stall(): number {
    const { bytes } = this.holding
    return bytes / Math.max(1, bytes - this.#heldBefore)
  }

  /** Takes note of how far it has come. */
  look(): void {
    this.#looks += 1
    this.#heldBefore = this.#heldThen
    this.#heldThen = this.holding.bytes
  }

  /** Whether it comes more slowly than it may. */
  get isLate(): boolean {
    const received = this.#request.bytesRead - this.#before
    return this.#looks > GRACE_LOOKS + received / BYTES_A_LOOK
  }
}

/**
 * Refuses bodies that come more slowly than 1 KiB a second, ten seconds after they began: they would hold a
 * connection and a slot for nothing. All of them are looked at together, once a second. One that has stalled
 * is refused at once where others need the memory that it holds.
 */
export class SlowBodies {
  readonly #readings = new DenseSet<Reading>()
  #timer: NodeJS.Timeout | undefined

  /**
   * Watches a body until what is returned is called; one that is too slow is refused with `request_timeout`.
   */
  watch(reading: Reading): () => void {
    this.#readings.add(reading)
    this.#timer ??= setInterval(() => this.#look(), LOOK_MS).unref()
    return () => this.#readings.delete(reading)
  }

  /**
   * Refuses the stalled body that made the least progress for what it holds, to make room for another: one of
   * the same client, or of a client that holds at least as much. False where there is none, or where the
   * asking body has stalled more.
   */
  refuseStalled(asking: Reading, room: BodyRoom): boolean {
    const { client } = asking.holding
    const own = room.heldBy(client)
    let worst: Reading | undefined
    let most = Math.max(STALLED, asking.stall)
    for (const reading of this.#readings) {
      const { stall, holding } = reading
      if (stall <= most) continue
      if (holding.client !== client && room.heldBy(holding.client) < own) continue
      worst = reading
      most = stall
    }
    worst?.refuse(stalled())
    return worst !== undefined
  }

  #look(): void {
    if (this.#readings.size === 0) {
      clearInterval(this.#timer)
      this.#timer = undefined
    }
    for (const reading of this.#readings) {
      reading.look()
      if (reading.isLate) reading.refuse(tooSlow())
    }
  }
}

function tooSlow(): GatewayError {
  return new GatewayError(
    'request_timeout',
    `the request body came more slowly than ${BYTES_A_LOOK} bytes a second`,
  )
}

function stalled(): GatewayError {
  return new GatewayError(
    'request_timeout',
    'the request body stalled while others needed the memory that it held; send it without pauses',
  )
}
