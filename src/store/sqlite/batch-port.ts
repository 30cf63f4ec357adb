import { EventEmitter } from 'node:events'
import type { BatchReply, FromThread, ThreadOptions, ToThread } from './messages.ts'
import type { PackedBatch } from './packed-batch.ts'

/** Port to a database that is already open elsewhere; `run` passes the batches on. */
export class BatchPort extends EventEmitter {
  readonly #run: (operations: PackedBatch) => Promise<BatchReply>

  constructor(run: (operations: PackedBatch) => Promise<BatchReply>) {
    super()
    this.#run = run
  }

  /** Accepts the same messages as a thread. The database stays open when this port is closed. */
  postMessage(message: ThreadOptions | ToThread): void {
    if ('role' in message) queueMicrotask(() => this.#reply({ kind: 'ready' }))
    else if (message.kind === 'close') queueMicrotask(() => this.emit('exit'))
    else
      this.#run(message.operations).then(
        (reply) => this.#reply(reply),
        (error: unknown) => this.end(error),
      )
  }

  /** Ends the queue because the database is gone: all queued operations fail. */
  end(reason: unknown): void {
    this.emit('error', reason)
    this.emit('exit')
  }

  /** Does nothing, because a port does not keep the process alive. */
  ref(): void {}

  #reply(message: FromThread): void {
    this.emit('message', message)
  }
}
