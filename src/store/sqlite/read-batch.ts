import type { DatabaseSync } from 'node:sqlite'
import type { Kysely } from 'kysely'
import * as reads from '../operations/reads.ts'
import type { Database } from '../row-types.ts'
import type { Secrets } from '../secrets.ts'
import { createKysely } from './dialect.ts'
import { mapDatabaseError, serializeError } from './failure.ts'
import type { BatchReply, Outcome, QueuedOperation } from './messages.ts'

type AnyRead = (db: Kysely<Database>, input: unknown, secrets: Secrets) => Promise<unknown>

const READS = { ...reads } as Readonly<Record<string, AnyRead>>

/** Runs reads one after another, each on a snapshot of its own. */
export class ReadBatches {
  readonly #db: DatabaseSync
  readonly #kysely: Kysely<Database>
  readonly #secrets: Secrets

  constructor(db: DatabaseSync, secrets: Secrets) {
    this.#db = db
    this.#kysely = createKysely(db)
    this.#secrets = secrets
  }

  /** Runs a batch of reads; never rejects. */
  async read(operations: readonly QueuedOperation[]): Promise<BatchReply> {
    const outcomes: Outcome[] = []
    for (const [name, input] of operations) outcomes.push(await this.#run(name, input))
    return { kind: 'done', outcomes }
  }

  async #run(name: string, input: unknown): Promise<Outcome> {
    try {
      this.#db.exec('BEGIN')
      const value = await READS[name]!(this.#kysely, input, this.#secrets)
      return { value }
    } catch (error) {
      return { failure: serializeError(mapDatabaseError(error)) }
    } finally {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
    }
  }
}
