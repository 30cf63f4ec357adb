/**
 * Maximum characters of content in all queued spans together, and (`MAX_OF_ONE`) in one call or attribute.
 */
const MAX_CONTENT = 32 * 1024 * 1024
const MAX_OF_ONE = 1024 * 1024

/**
 * Counts the spans in the queue, and the characters of their content. Spans that exceed the limit are dropped
 * and counted, so that no call waits for the queue.
 */
export class SpanQueueLimit {
  readonly #max: number
  readonly #onDropped: (spans: number) => void
  #waiting = 0
  #content = 0

  constructor(max: number, onDropped: (spans: number) => void) {
    this.#max = max
    this.#onDropped = onDropped
  }

  /** Whether this many spans fit into the queue. If not, counts them as dropped. */
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

  /** Whether content of this length (in characters) may be queued. */
  hasContentRoom(length: number): boolean {
    return length <= MAX_OF_ONE && this.#content + length <= MAX_CONTENT
  }

  /**
   * Reserves space for content of this length. Returns false if it is too long or the limit is reached; the
   * content is then left out.
   */
  takeContent(length: number): boolean {
    if (!this.hasContentRoom(length)) return false
    this.#content += length
    return true
  }

  /** Gives back the space for `length` characters of content that was reserved. */
  giveContent(length: number): void {
    this.#content -= length
  }
}
