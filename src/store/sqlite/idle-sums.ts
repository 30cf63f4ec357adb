import { type BatchReply, type QueuedOperation, SUM_UP_OPERATION } from './messages.ts'
import type { WriteBatches } from './write-batch.ts'

/**
 * Number of noted rows from which a part is summed up after each pause; fewer wait, because several may
 * belong to one sum.
 */
const ENOUGH = 100
/** Pause between parts, in which batches can run. */
const PAUSE_MS = 20
/** Number of noted rows from which the pauses are shorter, because reads have to wait for all of them. */
const MANY = 2000
/** Pause between parts while there are many. */
const SHORT_PAUSE_MS = 4
/** Time to wait for further rows while there are few. */
const GATHER_MS = 1000

/** Runs batches of a writer, and sums up calls while there is no batch. */
export class IdleSums {
  readonly #batches: WriteBatches
  #running = 0
  #timer: NodeJS.Timeout | undefined

  constructor(batches: WriteBatches) {
    this.#batches = batches
    this.#schedule(GATHER_MS)
  }

  /** Runs a batch; never rejects. */
  async write(operations: readonly QueuedOperation[]): Promise<BatchReply> {
    this.#running += 1
    const reply = await this.#batches.write(operations)
    this.#running -= 1
    this.#schedule(this.#waitMs)
    return reply
  }

  /** Sums up all calls if the disk allows it; otherwise the next start does. */
  async close(): Promise<void> {
    clearTimeout(this.#timer)
    while (this.#batches.unsummed > 0) if (!(await this.#sumPart())) return
  }

  get #waitMs(): number {
    const { unsummed } = this.#batches
    if (unsummed >= MANY) return SHORT_PAUSE_MS
    return unsummed >= ENOUGH ? PAUSE_MS : GATHER_MS
  }

  #schedule(waitMs: number): void {
    if (this.#timer || this.#batches.unsummed === 0) return
    this.#timer = setTimeout(() => void this.#sumUp(), waitMs)
    this.#timer.unref()
  }

  async #sumUp(): Promise<void> {
    this.#timer = undefined
    // The end of the batch schedules again.
    if (this.#running > 0) return
    this.#running += 1
    const hasSummed = await this.#sumPart()
    this.#running -= 1
    this.#schedule(hasSummed ? this.#waitMs : GATHER_MS)
  }

  async #sumPart(): Promise<boolean> {
    const reply = await this.#batches.write([[SUM_UP_OPERATION, undefined]])
    if (reply.kind === 'failed') return false
    const [outcome] = reply.outcomes
    return outcome !== undefined && 'value' in outcome
  }
}
