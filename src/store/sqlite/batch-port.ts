import { EventEmitter } from 'node:events'
import type { BatchReply, MessageFromThread, ThreadOptions, MessageToThread } from './messages.ts'
import type { PackedBatch } from './packed-batch.ts'

/** Connection to a database that is open elsewhere. Passes batches of operations to the function `run`. */
export class BatchPort extends EventEmitter {
  readonly #run: (operations: PackedBatch) => Promise<BatchReply>

  constructor(run: (operations: PackedBatch) => Promise<BatchReply>) {
    super()
    this.#run = run
  }

  /** Accepts the messages that a database thread accepts. Closing this port does not close the database. */
  postMessage(message: ThreadOptions | MessageToThread): void {
    if ('role' in message) queueMicrotask(() => this.#reply({ kind: 'ready' }))
    else if (message.kind === 'close') queueMicrotask(() => this.emit('exit'))
    else
      this.#run(message.operations).then(
        (reply) => this.#reply(reply),
        (error: unknown) => this.end(error),
      )
  }

  /** Reports that the database is gone, so that all queued operations fail. */
  end(reason: unknown): void {
    this.emit('error', reason)
    this.emit('exit')
  }

  /** Does nothing, because this port, unlike a thread, never keeps the process alive. */
  ref(): void {}

  #reply(message: MessageFromThread): void {
    this.emit('message', message)
  }
}
