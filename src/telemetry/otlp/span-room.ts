/** The room in the queue of spans. Spans without room are dropped and counted, never waited for. */
export class SpanRoom {
  readonly #max: number
  readonly #onDropped: (spans: number) => void
  #waiting = 0

  constructor(max: number, onDropped: (spans: number) => void) {
    this.#max = max
    this.#onDropped = onDropped
  }

  /** Whether there is room for this many spans. If not, they count as dropped. */
  has(spans: number): boolean {
    if (this.#waiting + spans <= this.#max) return true
    this.#onDropped(spans)
    return false
  }

  /** Records that spans were put into the queue. */
  enter(spans: number): void {
    this.#waiting += spans
  }

  /** Records that spans left the queue, to be sent. */
  leave(spans: number): void {
    this.#waiting -= spans
  }
}
