import type { BodyArrival } from '../../call/body-reader.ts'
import { GatewayError } from '../../errors.ts'
import { MessageMeter } from './message-meter.ts'

/** Counts what has arrived of an unfinished message of a client as memory for requests, and watches its pace. */
export class ArrivingMessage {
  readonly #watch: (refuse: (error: GatewayError) => void) => BodyArrival
  readonly #onRefused: (error: GatewayError) => void
  readonly #meter = new MessageMeter()
  #arrival: BodyArrival | undefined
  /** Bytes that `#arrival` has taken. */
  #bytes = 0

  /** `onRefused` is called if the message is too slow, or if there is no memory for it. */
  constructor(
    watch: (refuse: (error: GatewayError) => void) => BodyArrival,
    onRefused: (error: GatewayError) => void,
  ) {
    this.#watch = watch
    this.#onRefused = onRefused
  }

  /** Counts bytes, before they are read. Returns false to discard them. After the socket was closed nothing is taken. */
  count(bytes: Buffer, isClosed: boolean): boolean {
    if (isClosed && this.#arrival) this.end()
    if (this.#meter.count(bytes)) this.end()
    const missing = this.#meter.heldBytes - this.#bytes
    if (missing <= 0 || isClosed) return true
    this.#arrival ??= this.#watch((error) => {
      this.#arrival = undefined
      this.#onRefused(error)
    })
    if (this.#arrival.add(missing)) {
      this.#bytes += missing
      return true
    }
    this.end()
    this.#onRefused(new GatewayError('overloaded', 'there is no memory for this message at the moment'))
    return false
  }

  end(): void {
    this.#arrival?.end()
    this.#arrival = undefined
    this.#bytes = 0
  }
}
