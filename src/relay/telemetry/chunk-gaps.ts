/** Maximum number of gaps between reads that are measured in one stream. */
const MAX_GAPS = 4_096

/** Measures the times between two reads of a stream, for telemetry. */
export class ChunkGaps {
  /** The measured gaps in milliseconds, in order. */
  readonly ms: number[] = []
  #lastAt = 0

  /** Forgets the reads of an earlier attempt. */
  begin(): void {
    this.ms.length = 0
    this.#lastAt = 0
  }

  /** Records the time of a read. */
  note(): void {
    const now = performance.now()
    if (this.#lastAt > 0 && this.ms.length < MAX_GAPS) this.ms.push(now - this.#lastAt)
    this.#lastAt = now
  }
}
