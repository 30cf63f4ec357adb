import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { NodeWrites } from '../node-file.ts'
import { StoreUnavailable } from '../store-unavailable.ts'
import { mapDatabaseError, serializeError } from './failure.ts'
import type { BatchReply, Outcome, QueuedOperation } from './messages.ts'
import { NodeRows } from './node-rows.ts'

/** Writes batches to a node's file, each in one transaction, as `WriteBatches` does. */
export class NodeBatches {
  readonly #db: DatabaseSync
  readonly #rows: NodeRows
  readonly #begin: StatementSync
  readonly #commit: StatementSync

  constructor(db: DatabaseSync) {
    this.#db = db
    this.#rows = new NodeRows(db)
    this.#begin = db.prepare('BEGIN IMMEDIATE')
    this.#commit = db.prepare('COMMIT')
  }

  /** Runs a batch; never throws. With the reply `done`, the operations are durable. */
  write(operations: readonly QueuedOperation[]): BatchReply {
    try {
      this.#begin.run()
      const outcomes = operations.map(([name, input]) => this.#run(name as keyof NodeWrites, input))
      this.#commit.run()
      return { kind: 'done', outcomes }
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
      const cause = mapDatabaseError(error)
      const failure =
        cause instanceof StoreUnavailable ? cause : new StoreUnavailable('the commit failed', { cause })
      return { kind: 'failed', failure: serializeError(failure) }
    }
  }

  #run(name: keyof NodeWrites, input: unknown): Outcome {
    try {
      const value = this.#rows[name](input as never)
      return value === undefined ? undefined : { value }
    } catch (error) {
      const cause = mapDatabaseError(error)
      if (cause instanceof StoreUnavailable || !this.#db.isTransaction) throw cause
      return { failure: serializeError(cause) }
    }
  }
}
