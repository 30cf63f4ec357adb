import { type BatchReply, type QueuedOperation, SUM_UP_OPERATION } from './messages.ts'
import type { WriteBatches } from './write-batch.ts'

/**
 * Number of rows waiting to be added to the sums of usage, from which some are added after each pause. With
 * fewer rows it is worth waiting longer, because further rows may belong to the same sum.
 */
const ENOUGH = 100
/** Milliseconds between two steps of adding rows to the sums. Batches of writes run in this pause. */
const PAUSE_MS = 20
/**
 * Number of rows waiting to be added to the sums of usage, from which the pauses are shorter, because reads
 * of sums wait until all rows are added.
 */
const MANY = 2000
/** Milliseconds between two steps of adding rows to the sums, if at least `MANY` rows wait. */
const SHORT_PAUSE_MS = 4
/** Milliseconds to wait for more rows if fewer than `ENOUGH` wait. */
const GATHER_MS = 1000

/** Runs batches of writes, and adds calls to the sums of usage while there is no batch. */
export class IdleSums {
  readonly #batches: WriteBatches
  #running = 0
  #timer: NodeJS.Timeout | undefined

  constructor(batches: WriteBatches) {
    this.#batches = batches
    this.#schedule(GATHER_MS)
  }

  /** Runs a batch of writes; never rejects. */
  async write(operations: readonly QueuedOperation[]): Promise<BatchReply> {
    this.#running += 1
    const reply = await this.#batches.write(operations)
    this.#running -= 1
    this.#schedule(this.#waitMs)
    return reply
  }

  /** Adds all remaining calls to the sums. If a full or broken disk prevents this, the next start does it. */
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
    // A batch is running; when it ends, it schedules the next step.
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
