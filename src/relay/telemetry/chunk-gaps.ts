/** Gaps that are kept of one stream; later ones are not measured. */
const MAX_GAPS = 4_096

/** Times between two reads of a stream. */
export class ChunkGaps {
  /** Milliseconds, in their order. */
  readonly ms: number[] = []
  #lastAt = 0

  /** Forgets the reads of an earlier attempt. */
  begin(): void {
    this.ms.length = 0
    this.#lastAt = 0
  }

  /** Records a read. */
  note(): void {
    const now = performance.now()
    if (this.#lastAt > 0 && this.ms.length < MAX_GAPS) this.ms.push(now - this.#lastAt)
    this.#lastAt = now
  }
}
