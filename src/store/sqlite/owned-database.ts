import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { HOLD, type HoldRow, type ParkedHold } from '../../domain/records/usage.ts'
import type { AccountName, Bank } from '../bank.ts'
import { PARKED_OWNER } from '../ledger-writes.ts'
import type { Secrets } from '../secrets.ts'
import type { StoreUnavailable } from '../store-unavailable.ts'
import type { Store } from '../store.ts'
import { AccountChanges } from './account-changes.ts'
import { BatchPort } from './batch-port.ts'
import { openForWriting, wasClosedCleanly } from './connection.ts'
import { mapOpeningError, deserializeError } from './failure.ts'
import { IdleSums } from './idle-sums.ts'
import { LocalBank } from './local-bank.ts'
import type { BatchReply, Outcome, QueuedOperation } from './messages.ts'
import { openSqliteStore } from './open.ts'
import { unpackBatch } from './packed-batch.ts'
import { prepareDatabase } from './prepare-database.ts'
import { LEDGER_WRITES, WriteBatches } from './write-batch.ts'

/** Name that the owning process itself has among the clients of its database. */
const OWNER = 'owner'

/** Request of a client to the bank: the name of an operation and its input. */
export type BankRequest = {
  readonly [Name in keyof Bank]: readonly [name: Name, ...input: Parameters<Bank[Name]>]
}[keyof Bank]

/**
 * Result of settling the open calls of a client that has ended: their number, and their charges in quota
 * units.
 */
interface Recovered {
  readonly count: number
  readonly quota: number
}

/**
 * The database of one process, which runs it on the calling thread and makes it available to other processes,
 * its clients.
 */
export interface OwnedDatabase {
  /** The store through which the owning process reads and writes. */
  readonly store: Store
  /** Resolves if the database fails permanently; never rejects. */
  readonly failed: Promise<StoreUnavailable>
  /** Runs a batch of writes for a client; never rejects. */
  write(client: string, operations: Parameters<typeof unpackBatch>[0]): Promise<BatchReply>
  /** Runs an operation of the bank for a client. */
  bank(client: string, request: BankRequest): Promise<unknown>
  /**
   * Settles the open calls of a client whose process has ended, as after a crash, and then ends its leases.
   * The name of the client is the owner of its holds. A parked hold goes to the first client that then
   * requests the parked holds.
   */
  lose(client: string): Promise<Recovered>
  close(): Promise<void>
}

/**
 * Opens the database file; see `openSqliteStore`. `announce` is called when an account was changed, with the
 * account's epoch (how often its leases were ended).
 */
export async function openOwnedDatabase(options: {
  readonly path: string
  readonly secrets: Secrets
  readonly announce: (account: AccountName, epoch: number) => void
}): Promise<OwnedDatabase> {
  const { path, secrets, announce } = options
  const db = await opened(path, secrets)
  const changes = new AccountChanges(db)
  const batches = new WriteBatches(db, secrets)
  const bank = new LocalBank(db, announce, (holdId) => parked.clientOf(holdId))
  const parked = new ParkedHolds(db, (client, hold) => bank.takeUp(client, hold))
  const summed = new IdleSums(batches)
  batches.takeCharged()
  const writer = new SharedWriter({
    batches: summed,
    onCommitted(committed, replies) {
      const clients = new Map(committed.flatMap(settlementsOf))
      for (const call of batches.takeCharged()) {
        const client = clients.get(call.id)
        if (client !== undefined) bank.charge(client, call)
      }
      for (const [index, { client, operations }] of committed.entries())
        parked.observe(client, operations, (replies[index] as DoneReply).outcomes)
      // Leases end except for open holds, so it must be known who continues the calls of parked ones.
      if (committed.some(mayChangeAccounts)) bank.applyChanges(changes.take())
    },
  })
  const write: OwnedDatabase['write'] = (client, operations) => writer.write(client, unpackBatch(operations))
  const store = await openSqliteStore({
    path,
    secrets,
    thread: new BatchPort((operations) => write(OWNER, operations)),
  })
  return {
    store,
    failed: writer.failed,
    write,
    bank: (client, [name, ...input]) =>
      writer.between(() => (bank[name] as (...given: unknown[]) => unknown)(client, ...input)),
    async lose(client) {
      const recovered = await store.write('recoverRun', { owner: client, nowMs: Date.now() })
      await writer.between(() => {
        for (const hold of parked.leave(client)) bank.setAside(client, hold)
        bank.drop(client)
      })
      return recovered
    },
    async close() {
      await store.close()
      await writer.whenIdle()
      await summed.close()
      db.close()
    },
  }
}

type DoneReply = Extract<BatchReply, { kind: 'done' }>

async function opened(path: string, secrets: Secrets): Promise<ReturnType<typeof openForWriting>> {
  try {
    const stoppedClean = wasClosedCleanly(path)
    const db = openForWriting(path)
    await prepareDatabase(db, secrets, { stoppedClean })
    return db
  } catch (error) {
    throw mapOpeningError(error, path)
  }
}

function settlementsOf({ client, operations }: ClientBatch): [id: string, client: string][] {
  return operations.flatMap(([name, input]): [string, string][] =>
    name === 'settle' ? [[(input as { id: string }).id, client]] : [],
  )
}

function mayChangeAccounts({ operations }: ClientBatch): boolean {
  return operations.some(([name]) => !LEDGER_WRITES.has(name))
}

/**
 * Records which client continues the call of each parked hold: the client that parked the hold or the one
 * that took it over.
 */
class ParkedHolds {
  readonly #clients = new Map<string, string>()
  readonly #all: StatementSync
  readonly #onTakenUp: (client: string, hold: ParkedHold) => void

  /** `onTakenUp` is called when a client takes over a parked hold whose call no other client continues. */
  constructor(db: DatabaseSync, onTakenUp: (client: string, hold: ParkedHold) => void) {
    this.#all = db.prepare(`SELECT * FROM holds WHERE owner = '${PARKED_OWNER}'`)
    this.#onTakenUp = onTakenUp
  }

  /** The client that continues the call of a parked hold; undefined while no client does. */
  clientOf(holdId: string): string | undefined {
    return this.#clients.get(holdId)
  }

  /**
   * Records which holds a batch has parked and settled. From the result of a read of `parkedHolds`, removes
   * the holds whose calls other clients continue.
   */
  observe(client: string, operations: readonly QueuedOperation[], outcomes: readonly Outcome[]): void {
    for (const [index, [name, input]] of operations.entries()) {
      const outcome = outcomes[index]
      if (outcome && 'failure' in outcome) continue
      if (name === 'parkHold') this.#clients.set((input as { readonly id: string }).id, client)
      else if (name === 'settle') this.#clients.delete((input as { readonly id: string }).id)
      else if (name === 'parkedHolds' && outcome) this.#takeUp(client, outcome.value as ParkedHold[])
    }
  }

  /** Returns the parked holds of a client that has ended. From now on, other clients can take them over. */
  leave(client: string): ParkedHold[] {
    const rows = this.#all.all() as unknown as HoldRow[]
    const left = rows.filter(({ id }) => this.#clients.get(id) === client).map((row) => HOLD.fromRow(row))
    for (const [id, one] of this.#clients) if (one === client) this.#clients.delete(id)
    return left
  }

  #takeUp(client: string, holds: ParkedHold[]): void {
    const free = holds.filter(({ id }) => !this.#clients.has(id))
    for (const hold of free) {
      this.#clients.set(hold.id, client)
      this.#onTakenUp(client, hold)
    }
    holds.splice(0, holds.length, ...free)
  }
}

/** A batch of operations from one client. */
interface ClientBatch {
  /** Name of the client. */
  readonly client: string
  readonly operations: readonly QueuedOperation[]
}

interface WaitingBatch extends ClientBatch {
  readonly reply: (reply: BatchReply) => void
}

/** Services that a `SharedWriter` needs. */
interface SharedWriterDependencies {
  readonly batches: { write(operations: readonly QueuedOperation[]): Promise<BatchReply> }
  /**
   * Called after each commit. The clients get their replies afterwards, in the same turn of the event loop.
   */
  readonly onCommitted: (batches: readonly ClientBatch[], replies: readonly BatchReply[]) => void
}

/**
 * Writes to one database for several clients. Batches that arrive together are committed together. Tasks run
 * between commits: they see only committed rows, and nothing is written while they run.
 */
class SharedWriter {
  /** Resolves if the database fails permanently; never rejects. */
  readonly failed: Promise<StoreUnavailable>
  readonly #dependencies: SharedWriterDependencies
  readonly #fail: (reason: StoreUnavailable) => void
  #batches: WaitingBatch[] = []
  #tasks: (() => void)[] = []
  #isScheduled = false
  #running: Promise<void> | undefined

  constructor(dependencies: SharedWriterDependencies) {
    this.#dependencies = dependencies
    const { promise, resolve } = Promise.withResolvers<StoreUnavailable>()
    this.failed = promise
    this.#fail = resolve
  }

  /**
   * Runs a batch of writes; never rejects. A client sends its next batch after the reply to the previous one.
   */
  write(client: string, operations: readonly QueuedOperation[]): Promise<BatchReply> {
    return new Promise((reply) => {
      this.#batches.push({ client, operations, reply })
      this.#schedule()
    })
  }

  /** Runs a task between two commits, after all batches that arrived before the task. */
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

  /** Resolves when all batches and tasks received so far are done. */
  async whenIdle(): Promise<void> {
    while (this.#isScheduled || this.#running)
      await (this.#running ?? new Promise((turn) => setImmediate(turn)))
  }

  // Starts the work at the end of the event loop's turn, so that batches of several clients that are read in
  // one turn are joined.
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
    const reply = await this.#dependencies.batches.write(batches.flatMap(({ operations }) => operations))
    const replies = split(reply, batches)
    if (reply.kind === 'done') this.#dependencies.onCommitted(batches, replies)
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
