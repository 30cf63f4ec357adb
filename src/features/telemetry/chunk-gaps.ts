/** Maximum number of gaps between reads that are measured in one stream. */
const MAX_GAPS = 4_096

/** Measures the times between two reads of a stream, for telemetry. */
export class ChunkGaps {
  /** The measured gaps in milliseconds, in order. */
  readonly ms: number[] = []
  #lastAt: number | undefined

  /** Forgets the reads of an earlier attempt. */
  begin(): void {
    this.ms.length = 0
    this.#lastAt = undefined
  }

  /** Records the time of a read that follows the first byte of an answer, if that has arrived. */
  note(firstByteAt: number | undefined): void {
    const last = this.#lastAt ?? firstByteAt
    if (last === undefined) return
    const now = performance.now()
    if (this.ms.length < MAX_GAPS) this.ms.push(now - last)
    this.#lastAt = now
  }
}
