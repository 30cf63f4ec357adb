import type { DatabaseSync, StatementSync } from 'node:sqlite'
import {
  HOLD,
  type HoldOpening,
  type HoldRow,
  type ParkedHold,
  type SettledCall,
} from '../../domain/records/usage.ts'
import type { NodeWrites, OutboxEntry, UnsharedProvenance } from '../node-file.ts'
import type { CallProvenance } from '../operations/stored-responses.ts'
import { StoreUnavailable } from '../store-unavailable.ts'
import { serializeForOutbox } from '../usage-row.ts'
import { boundValues } from './bound-values.ts'
import {
  settlementOfCrashedCall,
  type HoldStatements,
  holdValues,
  orphanHoldParameters,
  prepareHolds,
  testWriteHold,
} from './hold-statements.ts'
import { mapDatabaseError, serializeError } from './failure.ts'
import type { BatchReply, Outcome, QueuedOperation } from './messages.ts'

/** Writes batches of operations to the local file of a node, each batch in one transaction. */
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

  /** Runs a batch; never throws. If the reply is `done`, the operations are durable. */
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

/** Number of holds that recovery loads at a time, to limit memory. */
const RECOVERY_BATCH = 2000

/** The writes to the local file of a node within the open transaction. A write that fails changes nothing. */
class NodeRows implements NodeWrites {
  readonly #holds: HoldStatements
  readonly #insert: StatementSync
  readonly #page: StatementSync
  readonly #reported: StatementSync
  readonly #insertProvenance: StatementSync
  readonly #unshared: StatementSync
  readonly #shared: StatementSync
  readonly #node: StatementSync
  readonly #join: StatementSync
  readonly #isBusy: StatementSync

  constructor(db: DatabaseSync) {
    this.#holds = prepareHolds(db, { hasTokens: false })
    this.#insert = db.prepare(
      'INSERT INTO outbox (id, token_id, user_id, quota, budgets, call) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING',
    )
    this.#page = db.prepare(
      `SELECT place, token_id, user_id, quota, budgets, call AS row FROM outbox
       WHERE 't:' || token_id NOT IN (SELECT value FROM json_each(?1))
         AND 'u:' || user_id NOT IN (SELECT value FROM json_each(?1))
         AND (budgets = '' OR NOT EXISTS (
           SELECT 1 FROM json_each(budgets) WHERE value IN (SELECT value FROM json_each(?1))))
       ORDER BY place LIMIT ?2`,
    )
    this.#reported = db.prepare('DELETE FROM outbox WHERE place IN (SELECT value FROM json_each(?))')
    this.#insertProvenance = db.prepare('INSERT INTO provenance (call) VALUES (?)')
    this.#unshared = db.prepare('SELECT place, call FROM provenance ORDER BY place LIMIT ?')
    this.#shared = db.prepare('DELETE FROM provenance WHERE place <= ?')
    this.#node = db.prepare('SELECT name, bank FROM node')
    this.#join = db.prepare('UPDATE node SET bank = ?')
    this.#isBusy = db.prepare(
      'SELECT EXISTS (SELECT 1 FROM outbox) OR EXISTS (SELECT 1 FROM provenance) OR EXISTS (SELECT 1 FROM holds) AS busy',
    )
  }

  hold(opening: HoldOpening): void {
    this.#holds.insertHold.run(...holdValues(opening))
  }

  growHold({ id, by }: Parameters<NodeWrites['growHold']>[0]): void {
    this.#holds.growHold.run(by, id)
  }

  markProgress({ id, amount }: Parameters<NodeWrites['markProgress']>[0]): void {
    this.#holds.markProgress.run(amount, id)
  }

  settle(call: SettledCall): void {
    const values = boundValues([
      call.id,
      call.token_id,
      call.user_id,
      call.quota,
      call.budgets,
      serializeForOutbox(call),
    ])
    const isNew = this.#insert.run(...values).changes === 1
    const { provenance } = call
    if (isNew && provenance) this.#insertProvenance.run(provenCall({ ...call, provenance }))
    this.#holds.deleteHold.run(call.id)
    if (isNew && call.part) this.#holds.growHold.run(-call.part.amount, call.part.hold)
  }

  releaseHold({ id }: Parameters<NodeWrites['releaseHold']>[0]): void {
    this.#holds.deleteHold.run(id)
  }

  probe(): void {
    testWriteHold(this.#holds)
  }

  parkHold({ id }: Parameters<NodeWrites['parkHold']>[0]): void {
    this.#holds.parkHold.run(id)
  }

  parkedHolds(): ParkedHold[] {
    const rows = this.#holds.parkedHolds.all() as unknown as HoldRow[]
    return rows.map((row) => HOLD.fromRow(row))
  }

  recover({ nowMs, ...run }: Parameters<NodeWrites['recover']>[0]): { count: number; quota: number } {
    let [count, quota] = [0, 0]
    for (;;) {
      const orphans = this.#holds.orphans.all(
        ...orphanHoldParameters(run, RECOVERY_BATCH),
      ) as unknown as HoldRow[]
      for (const hold of orphans) {
        const call = settlementOfCrashedCall(hold, nowMs)
        this.settle(call)
        count += 1
        quota += call.quota
      }
      if (orphans.length < RECOVERY_BATCH) return { count, quota }
    }
  }

  outbox({ limit, except }: Parameters<NodeWrites['outbox']>[0]): OutboxEntry[] {
    return this.#page.all(JSON.stringify(except), limit) as unknown as OutboxEntry[]
  }

  reported({ places }: Parameters<NodeWrites['reported']>[0]): void {
    this.#reported.run(JSON.stringify(places))
  }

  unshared({ limit }: Parameters<NodeWrites['unshared']>[0]): UnsharedProvenance[] {
    const rows = this.#unshared.all(limit) as { place: number; call: string }[]
    return rows.map(({ place, call }) => ({ place, call: JSON.parse(call) as CallProvenance }))
  }

  shared({ place }: Parameters<NodeWrites['shared']>[0]): void {
    this.#shared.run(place)
  }

  joinBank({ bankId }: Parameters<NodeWrites['joinBank']>[0]): string {
    const { name, bank } = this.#node.get() as { name: string; bank: string }
    if (bank !== bankId) {
      if (this.#isBusy.get()?.['busy'] === 1) {
        throw new Error(
          'the file node.db of this data folder has calls to report to another database than DATABASE_URL names: ' +
            'start once more with the one that it was used with, or choose another DATA_DIR',
        )
      }
      this.#join.run(bankId)
    }
    return name
  }
}

function provenCall({ user_id, model, group, channel, ended_ms, provenance }: CallProvenance): string {
  return JSON.stringify({ user_id, model, group, channel, ended_ms, provenance } satisfies CallProvenance)
}
