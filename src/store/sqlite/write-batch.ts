import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Kysely } from 'kysely'
import type { LedgerWrites } from '../ledger-writes.ts'
import { writes } from '../operations/writes.ts'
import type { Database } from '../schema.ts'
import type { Secrets } from '../secrets.ts'
import { StoreUnavailable } from '../store-unavailable.ts'
import { kyselyOver } from './dialect.ts'
import { blamed, takeApart } from './failure.ts'
import { LedgerRows } from './ledger-rows.ts'
import type { BatchReply, Outcome, QueuedOperation } from './messages.ts'

const LEDGER_WRITES: ReadonlySet<string> = new Set<keyof LedgerWrites>([
  'hold',
  'growHold',
  'markProgress',
  'settle',
  'recover',
  'loadAccount',
])

type AnyWrite = (db: Kysely<Database>, input: unknown, secrets: Secrets) => Promise<unknown>

/**
 * Writes batches: each is one transaction, begun and committed here. An operation that fails leaves no trace and fails
 * alone; a database that fails takes the whole batch with it.
 */
export class WriteBatches {
  readonly #db: DatabaseSync
  readonly #kysely: Kysely<Database>
  readonly #secrets: Secrets
  readonly #ledger: LedgerRows
  readonly #begin: StatementSync
  readonly #commit: StatementSync
  readonly #savepoint: StatementSync
  readonly #release: StatementSync
  readonly #rollbackToSavepoint: StatementSync

  constructor(db: DatabaseSync, secrets: Secrets) {
    this.#db = db
    this.#kysely = kyselyOver(db)
    this.#secrets = secrets
    this.#ledger = new LedgerRows(db)
    this.#begin = db.prepare('BEGIN IMMEDIATE')
    this.#commit = db.prepare('COMMIT')
    this.#savepoint = db.prepare('SAVEPOINT operation')
    this.#release = db.prepare('RELEASE operation')
    this.#rollbackToSavepoint = db.prepare('ROLLBACK TO operation')
  }

  /** Never rejects. When it answers `done`, the operations are on the disk. */
  async write(operations: readonly QueuedOperation[]): Promise<BatchReply> {
    try {
      this.#begin.run()
      const outcomes: Outcome[] = []
      for (const [name, input] of operations) {
        outcomes.push(
          LEDGER_WRITES.has(name)
            ? this.#runLedgerWrite(name as keyof LedgerWrites, input)
            : await this.#runWrite(name as keyof typeof writes, input),
        )
      }
      this.#ledger.writeBalances()
      this.#commit.run()
      return { kind: 'done', outcomes }
    } catch (error) {
      this.#rollback()
      return { kind: 'failed', failure: takeApart(unavailable(error)) }
    }
  }

  // Without a savepoint: each is made so that a failure leaves no trace.
  #runLedgerWrite(name: keyof LedgerWrites, input: unknown): Outcome {
    try {
      const value = this.#ledger[name](input as never)
      return value === undefined ? undefined : { value }
    } catch (error) {
      return this.#failedAlone(error)
    }
  }

  async #runWrite(name: keyof typeof writes, input: unknown): Promise<Outcome> {
    this.#ledger.writeBalances()
    this.#savepoint.run()
    try {
      const value = await (writes[name] as AnyWrite)(this.#kysely, input, this.#secrets)
      this.#release.run()
      return value === undefined ? undefined : { value }
    } catch (error) {
      const outcome = this.#failedAlone(error)
      this.#rollbackToSavepoint.run()
      this.#release.run()
      return outcome
    }
  }

  /** Rethrows what fails the whole batch: trouble of the database, after which SQLite may have rolled back by itself. */
  #failedAlone(error: unknown): Outcome {
    const cause = blamed(error)
    if (cause instanceof StoreUnavailable || !this.#db.isTransaction) throw cause
    return { failure: takeApart(cause) }
  }

  #rollback(): void {
    this.#ledger.forgetBalances()
    if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
  }
}

function unavailable(error: unknown): StoreUnavailable {
  const cause = blamed(error)
  return cause instanceof StoreUnavailable ? cause : new StoreUnavailable('the commit failed', { cause })
}
