import { Roster } from '../domain/roster.ts'
import { GatewayError } from '../errors.ts'
import type { Request } from '../server/request.ts'

/** How often bodies are looked at. */
const LOOK_MS = 1_000
/** Looks before a body may be late, and the bytes that put that off by one more. */
const GRACE_LOOKS = 10
const BYTES_A_LOOK = 1_024

/** A body that is being read. */
interface Reading {
  readonly request: Request
  /** Bytes that had come over its connection when it began. */
  readonly before: number
  readonly refuse: (error: GatewayError) => void
  looks: number
  place: number
}

/**
 * Refuses bodies that come more slowly than 1 KiB a second, ten seconds after they began: who sends a byte now and then would hold
 * a connection, and a place among the calls, for nothing. All of them are looked at together, once a second.
 */
export class SlowBodies {
  readonly #readings = new Roster<Reading>()
  #timer: NodeJS.Timeout | undefined

  /** Watches a body until what is returned is called; one that is too slow is refused with `request_timeout`. */
  watch(request: Request, refuse: (error: GatewayError) => void): () => void {
    const reading = { request, before: request.bytesRead, refuse, looks: 0, place: -1 }
    this.#readings.add(reading)
    this.#timer ??= setInterval(() => this.#look(), LOOK_MS).unref()
    return () => this.#readings.delete(reading)
  }

  #look(): void {
    if (this.#readings.size === 0) {
      clearInterval(this.#timer)
      this.#timer = undefined
    }
    for (const reading of this.#readings) {
      reading.looks += 1
      const received = reading.request.bytesRead - reading.before
      if (reading.looks > GRACE_LOOKS + received / BYTES_A_LOOK) reading.refuse(tooSlow())
    }
  }
}

function tooSlow(): GatewayError {
  return new GatewayError(
    'request_timeout',
    `the request body came more slowly than ${BYTES_A_LOOK} bytes a second`,
  )
}
