/** Characters of content that may wait for the collector, in all spans, and of one call or attribute. */
const MAX_CONTENT = 32 * 1024 * 1024
const MAX_OF_ONE = 1024 * 1024

/** The room in the queue of spans. Spans without room are dropped and counted, never waited for. */
export class SpanRoom {
  readonly #max: number
  readonly #onDropped: (spans: number) => void
  #waiting = 0
  #content = 0

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

  /** Takes room for so much content. If there is none, or it is too long, the content is left out. */
  takeContent(length: number): boolean {
    if (length > MAX_OF_ONE || this.#content + length > MAX_CONTENT) return false
    this.#content += length
    return true
  }

  /** Gives room for content back. */
  giveContent(length: number): void {
    this.#content -= length
  }
}
