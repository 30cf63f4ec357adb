import type { AlertAttempt } from './alert-sender.ts'

/** Maximum number of alert receivers whose last attempt is remembered. */
const MAX_RECEIVERS = 1000

/** The last attempt to deliver an alert to a receiver. */
interface LastDelivery extends AlertAttempt {
  /** When the attempt was made, in Unix seconds. */
  readonly at: number
}

/** The last attempt of this process to deliver an alert to each receiver, by the tag of the receiver. */
export class LastDeliveries {
  readonly #byTag = new Map<string, LastDelivery>()

  note(tag: string, attempt: AlertAttempt): void {
    this.#byTag.delete(tag)
    this.#byTag.set(tag, { ...attempt, at: Math.floor(Date.now() / 1000) })
    const [oldest] = this.#byTag.keys()
    if (this.#byTag.size > MAX_RECEIVERS && oldest !== undefined) this.#byTag.delete(oldest)
  }

  of(tag: string): LastDelivery | undefined {
    return this.#byTag.get(tag)
  }
}
