import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { DeclaredSetting } from '../../domain/audit.ts'
import type { SettledCall } from '../../domain/records/usage.ts'
import type { LedgerWrites } from '../ledger-writes.ts'
import type { Secrets } from '../secrets.ts'
import { StoreUnavailable } from '../store-unavailable.ts'
import { mapDatabaseError, serializeError } from './failure.ts'
import { LedgerRows } from './ledger-rows.ts'
import { LocalReads } from './local-reads.ts'
import {
  type BatchReply,
  isLocalRead,
  SUM_UP_OPERATION,
  type LocalRead,
  type Outcome,
  type QueuedOperation,
} from './messages.ts'
import type { WriteOperation } from './write-operations.ts'

/** Names of the writes for calls, recovery and pruning. They do not change the settings of an account. */
const LEDGER_WRITES: ReadonlySet<string> = new Set<keyof LedgerWrites>([
  'hold',
  'growHold',
  'markProgress',
  'parkHold',
  'parkedHolds',
  'probe',
  'releaseHold',
  'settle',
  'recover',
  'loadAccount',
  'openBudget',
  'prune',
  'storePriceSet',
])

/**
 * Runs batches of writes, each in one transaction. An operation that fails changes nothing, and the others
 * succeed. If the database itself fails, the whole batch fails.
 */
export class WriteBatches {
  readonly #db: DatabaseSync
  readonly #secrets: Secrets
  readonly #ledger: LedgerRows
  readonly #reads: LocalReads
  #operation: WriteOperation | undefined
  readonly #begin: StatementSync
  readonly #commit: StatementSync
  readonly #savepoint: StatementSync
  readonly #release: StatementSync
  readonly #rollbackToSavepoint: StatementSync

  constructor(db: DatabaseSync, secrets: Secrets) {
    this.#db = db
    this.#secrets = secrets
    this.#ledger = new LedgerRows(db)
    this.#reads = new LocalReads(db, secrets)
    this.#begin = db.prepare('BEGIN IMMEDIATE')
    this.#commit = db.prepare('COMMIT')
    this.#savepoint = db.prepare('SAVEPOINT operation')
    this.#release = db.prepare('RELEASE operation')
    this.#rollbackToSavepoint = db.prepare('ROLLBACK TO operation')
  }

  /** Runs a batch; never rejects. If the reply is `done`, the operations are durable. */
  async write(operations: readonly QueuedOperation[]): Promise<BatchReply> {
    try {
      this.#begin.run()
      this.#ledger.begin(settledIn(operations))
      const outcomes: Outcome[] = []
      for (const [name, input] of operations) {
        if (LEDGER_WRITES.has(name)) outcomes.push(this.#runLedgerWrite(name as keyof LedgerWrites, input))
        else if (name === SUM_UP_OPERATION) outcomes.push(this.#sumUp(input as number | undefined))
        else if (isLocalRead(name)) outcomes.push(this.#runRead(name, input))
        else outcomes.push(await this.#runWrite(name, input))
      }
      this.#ledger.finish()
      this.#commit.run()
      this.#ledger.commit()
      return { kind: 'done', outcomes }
    } catch (error) {
      this.#rollback()
      return { kind: 'failed', failure: serializeError(unavailable(error)) }
    }
  }

  /** Number of calls that are not in the sums of usage yet; after a failure an estimate, but 0 only if there are none. */
  get unsummed(): number {
    return this.#ledger.sums.waiting
  }

  /** Whether a set of gathered calls is in the sums of usage partly. */
  get isSumming(): boolean {
    return this.#ledger.sums.isWriting
  }

  #sumUp(through: number | undefined): Outcome {
    this.#ledger.finish()
    this.#savepoint.run()
    try {
      const value = this.#ledger.sums.sumUp(through)
      this.#release.run()
      return { value }
    } catch (error) {
      const outcome = this.#revert(error)
      this.#ledger.sums.discard()
      return outcome
    }
  }

  // Runs a write of a call. It needs no savepoint, because it changes nothing if it fails.
  #runLedgerWrite(name: keyof LedgerWrites, input: unknown): Outcome {
    try {
      const value = this.#ledger[name](input as never)
      return value === undefined ? undefined : { value }
    } catch (error) {
      return this.#failedAlone(error)
    }
  }

  #runRead(name: LocalRead, input: unknown): Outcome {
    try {
      this.#ledger.writeSums()
      return { value: this.#reads[name](input as never) }
    } catch (error) {
      return this.#failedAlone(error)
    }
  }

  async #runWrite(name: string, input: unknown): Promise<Outcome> {
    this.#ledger.writeSums()
    if (
      name === 'recordDeclaredRows' &&
      this.#reads.hasDeclared((input as { settings: readonly DeclaredSetting[] }).settings)
    ) {
      return undefined
    }
    this.#operation ??= (await import('./write-operations.ts')).writeOperations(this.#db, this.#secrets)
    this.#savepoint.run()
    try {
      const value = await this.#operation(name, input)
      this.#release.run()
      return value === undefined ? undefined : { value }
    } catch (error) {
      return this.#revert(error)
    }
  }

  #revert(error: unknown): Outcome {
    const outcome = this.#failedAlone(error)
    this.#rollbackToSavepoint.run()
    this.#release.run()
    return outcome
  }

  /**
   * Returns the error of one operation as its outcome. Rethrows an error of the whole database, so that the
   * whole batch fails.
   */
  #failedAlone(error: unknown): Outcome {
    const cause = mapDatabaseError(error)
    if (cause instanceof StoreUnavailable || !this.#db.isTransaction) throw cause
    return { failure: serializeError(cause) }
  }

  #rollback(): void {
    this.#ledger.discard()
    if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
  }
}

function settledIn(operations: readonly QueuedOperation[]): Set<string> {
  const ids = new Set<string>()
  for (const [name, input] of operations) if (name === 'settle') ids.add((input as SettledCall).id)
  return ids
}

function unavailable(error: unknown): StoreUnavailable {
  const cause = mapDatabaseError(error)
  return cause instanceof StoreUnavailable ? cause : new StoreUnavailable('the commit failed', { cause })
}
