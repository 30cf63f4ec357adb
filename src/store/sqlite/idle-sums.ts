import { type BatchReply, type QueuedOperation, SUM_UP_OPERATION } from './messages.ts'
import type { WriteBatches } from './write-batch.ts'

/** Milliseconds for which calls are gathered before they are added to the sums of usage. */
const GATHER_MS = 1000
/** Number of gathered calls that are added at once, to limit memory and the work after a crash. */
const MANY = 20_000
/** Milliseconds between two parts of gathered calls. Batches of writes run in this pause. */
const PAUSE_MS = 4

/** Runs batches of writes, and adds calls to the sums of usage while there is no batch. */
export class IdleSums {
  readonly #batches: WriteBatches
  #running = 0
  #timer: NodeJS.Timeout | undefined
  /** The pause that `#timer` waits, in milliseconds. */
  #waitMs = 0

  constructor(batches: WriteBatches) {
    this.#batches = batches
    this.#schedule(GATHER_MS)
  }

  /** Runs a batch of writes; never rejects. */
  async write(operations: readonly QueuedOperation[]): Promise<BatchReply> {
    this.#running += 1
    const reply = await this.#batches.write(operations)
    this.#running -= 1
    this.#schedule(this.#dueMs)
    return reply
  }

  /** Adds all remaining calls to the sums. If a full or broken disk prevents this, the next start does it. */
  async close(): Promise<void> {
    clearTimeout(this.#timer)
    while (this.#batches.unsummed > 0) if (!(await this.#sumPart())) return
  }

  get #dueMs(): number {
    return this.#batches.isSumming || this.#batches.unsummed >= MANY ? PAUSE_MS : GATHER_MS
  }

  #schedule(waitMs: number): void {
    if (this.#batches.unsummed === 0) return
    if (this.#timer) {
      if (waitMs >= this.#waitMs) return
      clearTimeout(this.#timer)
    }
    this.#waitMs = waitMs
    this.#timer = setTimeout(() => void this.#sumUp(), waitMs)
    this.#timer.unref()
  }

  async #sumUp(): Promise<void> {
    this.#timer = undefined
    // A batch is running, which must not be interrupted.
    if (this.#running > 0) return this.#schedule(PAUSE_MS)
    this.#running += 1
    const hasSummed = await this.#sumPart()
    this.#running -= 1
    this.#schedule(hasSummed ? this.#dueMs : GATHER_MS)
  }

  async #sumPart(): Promise<boolean> {
    const reply = await this.#batches.write([[SUM_UP_OPERATION, undefined]])
    if (reply.kind === 'failed') return false
    const [outcome] = reply.outcomes
    return outcome !== undefined && 'value' in outcome
  }
}
