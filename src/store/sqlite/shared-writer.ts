import { deserializeError } from './failure.ts'
import type { BatchReply, QueuedOperation } from './messages.ts'
import type { StoreUnavailable } from '../store-unavailable.ts'

/** Batch of one client of a database. */
export interface ClientBatch {
  /** Name of the client. */
  readonly client: string
  readonly operations: readonly QueuedOperation[]
}

interface WaitingBatch extends ClientBatch {
  readonly reply: (reply: BatchReply) => void
}

/** Dependencies of a writer. */
interface SharedWriterParts {
  readonly batches: { write(operations: readonly QueuedOperation[]): Promise<BatchReply> }
  /** Called after each commit, in the turn in which the clients are informed of it, but before them. */
  readonly onCommitted: (batches: readonly ClientBatch[], replies: readonly BatchReply[]) => void
}

/**
 * Writer of one database for several clients. Batches that arrive together share a commit. Tasks run between
 * commits: they see committed rows only, and nothing is written during them.
 */
export class SharedWriter {
  /** Resolves if the database fails for good; never rejects. */
  readonly failed: Promise<StoreUnavailable>
  readonly #parts: SharedWriterParts
  readonly #fail: (reason: StoreUnavailable) => void
  #batches: WaitingBatch[] = []
  #tasks: (() => void)[] = []
  #isScheduled = false
  #running: Promise<void> | undefined

  constructor(parts: SharedWriterParts) {
    this.#parts = parts
    const { promise, resolve } = Promise.withResolvers<StoreUnavailable>()
    this.failed = promise
    this.#fail = resolve
  }

  /** Writes a batch; never rejects. A client has one batch under way at a time. */
  write(client: string, operations: readonly QueuedOperation[]): Promise<BatchReply> {
    return new Promise((reply) => {
      this.#batches.push({ client, operations, reply })
      this.#schedule()
    })
  }

  /** Runs a task after the batches that arrived before it. */
  between<Result>(task: () => Result): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#tasks.push(() => {
        try {
          resolve(task())
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)))
        }
      })
      this.#schedule()
    })
  }

  /** Resolves when everything received so far is done. */
  async whenIdle(): Promise<void> {
    while (this.#isScheduled || this.#running)
      await (this.#running ?? new Promise((turn) => setImmediate(turn)))
  }

  // Begins at the end of the turn, because batches of several clients may be read in one turn.
  #schedule(): void {
    if (this.#isScheduled || this.#running) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#running = this.#run().finally(() => {
        this.#running = undefined
        if (this.#batches.length + this.#tasks.length > 0) this.#schedule()
      })
    })
  }

  async #run(): Promise<void> {
    const batches = this.#batches
    const tasks = this.#tasks
    this.#batches = []
    this.#tasks = []
    if (batches.length > 0) await this.#write(batches)
    for (const task of tasks) task()
  }

  async #write(batches: readonly WaitingBatch[]): Promise<void> {
    const reply = await this.#parts.batches.write(batches.flatMap(({ operations }) => operations))
    const replies = split(reply, batches)
    if (reply.kind === 'done') this.#parts.onCommitted(batches, replies)
    for (const [index, batch] of batches.entries()) batch.reply(replies[index] as BatchReply)
    const failures = reply.kind === 'failed' ? [reply.failure] : reply.outcomes.map(failureIn)
    for (const failure of failures) {
      if (failure?.kind !== 'unavailable' || !failure.lasting) continue
      this.#fail(deserializeError(failure) as StoreUnavailable)
      return
    }
  }
}

function split(reply: BatchReply, batches: readonly ClientBatch[]): BatchReply[] {
  if (reply.kind === 'failed') return batches.map(() => reply)
  let from = 0
  return batches.map(({ operations }) => {
    const outcomes = reply.outcomes.slice(from, from + operations.length)
    from += operations.length
    return { kind: 'done', outcomes }
  })
}

function failureIn(
  outcome: Extract<BatchReply, { kind: 'done' }>['outcomes'][number],
): Extract<BatchReply, { kind: 'failed' }>['failure'] | undefined {
  return outcome && 'failure' in outcome ? outcome.failure : undefined
}
