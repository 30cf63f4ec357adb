import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import { parseBudgetList } from '../../domain/budget.ts'
import type { TokenRow } from '../../domain/records/token.ts'
import {
  HOLD,
  type HoldOpening,
  type HoldRow,
  type ParkedHold,
  type SettledCall,
} from '../../domain/records/usage.ts'
import type { UserRow } from '../../domain/records/user.ts'
import type { LedgerWrites, PruneResult, StoredAccount } from '../ledger-writes.ts'
import { tokenFromRow, userFromRow } from '../account-rows.ts'
import { PLAIN_ROW_COLUMNS, plainValues, ROW_COLUMNS, rowValues } from '../usage-row.ts'
import { boundValues } from './bound-values.ts'
import {
  settlementOfCrashedCall,
  holdValues,
  orphanHoldParameters,
  prepareHolds,
  testWriteHold,
  type HoldStatements,
} from './hold-statements.ts'
import { BudgetRows } from './budget-rows.ts'
import { GatheredSums, type SumProgress } from './gathered-sums.ts'
import { NATIVE_RETENTION_MS, type Provenance } from '../../domain/stored-response.ts'

/** Number of holds that recovery loads at a time, to limit memory. */
const RECOVERY_BATCH = 2000

/**
 * The writes of calls within the open transaction. A write that fails changes nothing, because only its first
 * statement can fail. Changes of balances are added up in memory, and `writeSums` writes each row once. Call
 * `finish` before the transaction ends, and `discard` after a rollback.
 */
export class LedgerRows implements LedgerWrites {
  readonly #statements: LedgerStatements
  readonly #tokens = new Map<number, { quota: number; accessedSeconds: number }>()
  readonly #users = new Map<number, { quota: number; requests: number }>()
  readonly #sums: GatheredSums
  readonly #budgets: BudgetRows
  readonly #provenance: ProvenanceRows
  /** Ids of calls that this transaction settles and for which it has not created a hold. */
  #settled = new Set<string>()
  /**
   * Holds that are not written, because this transaction also settles their calls: the parameters of
   * `insertHold` by id.
   */
  #unwrittenHolds = new Map<string, readonly SQLInputValue[]>()

  constructor(db: DatabaseSync) {
    this.#statements = prepareLedger(db)
    this.#sums = new GatheredSums(db)
    this.#budgets = new BudgetRows(db)
    this.#provenance = new ProvenanceRows(db)
  }

  /**
   * Begins a transaction that settles the calls with these ids. Holds of these calls that the same
   * transaction creates are not written. The caller must not use the set again, because it is changed later.
   */
  begin(settled: Set<string>): void {
    this.#settled = settled
    this.#unwrittenHolds = new Map()
  }

  hold(opening: HoldOpening): void {
    const values = holdValues(opening)
    if (this.#settled.delete(opening.id)) {
      this.#unwrittenHolds.set(opening.id, values)
      return
    }
    // If this transaction created a hold with the same id before, that hold is written now, so that the
    // database refuses the second one.
    this.#writeHold(opening.id)
    this.#statements.insertHold.run(...values)
  }

  growHold({ id, by }: Parameters<LedgerWrites['growHold']>[0]): void {
    this.#writeHold(id)
    this.#statements.growHold.run(by, id)
  }

  markProgress({ id, amount }: Parameters<LedgerWrites['markProgress']>[0]): void {
    this.#writeHold(id)
    this.#statements.markProgress.run(amount, id)
  }

  settle(call: SettledCall): void {
    // Writes the usage row first: if that fails, nothing has changed and the hold stays open.
    const isNew = this.#insertUsage(call)
    if (!this.#unwrittenHolds.delete(call.id)) this.#statements.deleteHold.run(call.id)
    if (isNew) {
      if (call.part) this.#statements.growHold.run(-call.part.amount, call.part.hold)
      this.#charge(call)
      this.#sums.add(call)
      if (call.budgets !== '') this.#budgets.charge(parseBudgetList(call.budgets), call.quota)
      if (call.provenance) this.#provenance.insert(call, call.provenance)
    }
  }

  releaseHold({ id }: Parameters<LedgerWrites['releaseHold']>[0]): void {
    this.#statements.deleteHold.run(id)
  }

  probe(): void {
    testWriteHold(this.#statements)
  }

  parkHold({ id }: Parameters<LedgerWrites['parkHold']>[0]): void {
    this.#writeHold(id)
    this.#statements.parkHold.run(id)
  }

  parkedHolds(): ParkedHold[] {
    const rows = this.#statements.parkedHolds.all() as unknown as HoldRow[]
    return rows.map((row) => HOLD.fromRow(row))
  }

  recover({ nowMs, ...run }: Parameters<LedgerWrites['recover']>[0]): { count: number; quota: number } {
    this.#writeAllHolds()
    let count = 0
    let sum = 0
    for (;;) {
      const orphans = this.#statements.orphans.all(
        ...orphanHoldParameters(run, RECOVERY_BATCH),
      ) as unknown as HoldRow[]
      for (const hold of orphans) {
        const call = settlementOfCrashedCall(hold, nowMs)
        this.settle(call)
        count += 1
        sum += call.quota
      }
      if (orphans.length < RECOVERY_BATCH) return { count, quota: sum }
    }
  }

  loadAccount({ tokenId }: Parameters<LedgerWrites['loadAccount']>[0]): StoredAccount | null {
    this.writeSums()
    const token = this.#statements.token.get(tokenId) as TokenRow | undefined
    if (!token) return null
    const user = this.#statements.user.get(token.user_id) as unknown as UserRow
    return {
      token: tokenFromRow(token),
      user: userFromRow(user),
      openHolds: {
        token: this.#statements.openHoldsOfToken.get(tokenId)?.['amount'] as number,
        user: this.#statements.openHoldsOfUser.get(user.id)?.['amount'] as number,
      },
    }
  }

  openBudget(opening: Parameters<LedgerWrites['openBudget']>[0]): { readonly used: number } {
    this.writeSums()
    return this.#budgets.open(opening)
  }

  prune({ beforeMs, limit }: Parameters<LedgerWrites['prune']>[0]): PruneResult {
    this.#sums.list()
    const start = performance.now()
    const { changes } = this.#statements.prune.run(limit, Math.min(beforeMs, this.#sums.neededFromMs()))
    return { rows: Number(changes), tookMs: performance.now() - start }
  }

  storePriceSet({ version, model, group, content }: Parameters<LedgerWrites['storePriceSet']>[0]): void {
    this.#statements.storePriceSet.run(...boundValues([version, model, group, content]))
  }

  /** Writes the changes of balances and budgets that were added up in memory, each row once. */
  writeSums(): void {
    this.#writeAllHolds()
    if (this.#tokens.size === 0) return
    for (const [id, { quota, accessedSeconds }] of this.#tokens) {
      this.#statements.chargeToken.run(quota, accessedSeconds, id)
    }
    for (const [id, { quota, requests }] of this.#users) {
      this.#statements.chargeUser.run(quota, requests, id)
    }
    this.#budgets.write()
    this.#discardSums()
  }

  /** Writes everything that this transaction has not written yet. Call it before the transaction ends. */
  finish(): void {
    this.writeSums()
    this.#sums.list()
  }

  /** Call it after the transaction was committed. */
  commit(): void {
    this.#sums.commit()
  }

  /** The settled calls, gathered for the sums of usage. */
  get sums(): Pick<GatheredSums, 'waiting' | 'isWriting' | 'discard'> & {
    sumUp(through: number | undefined): SumProgress
  } {
    return this.#sums
  }

  /** Discards the changes that were added up in memory, because their transaction was rolled back. */
  discard(): void {
    this.#discardSums()
    this.#sums.discard()
  }

  #discardSums(): void {
    this.#tokens.clear()
    this.#users.clear()
    this.#budgets.discard()
  }

  #insertUsage(call: SettledCall): boolean {
    const values = rowValues(call)
    try {
      const plain = plainValues(values)
      if (plain) return this.#statements.insertPlainUsage.run(...boundValues(plain)).changes === 1
      return this.#statements.insertUsage.run(...boundValues(values)).changes === 1
    } catch (error) {
      this.#writeHold(call.id)
      throw error
    }
  }

  // Writes a hold that was not written so far, because the next statement needs its row.
  #writeHold(id: string): void {
    const values = this.#unwrittenHolds.get(id)
    if (!values) return
    this.#unwrittenHolds.delete(id)
    this.#statements.insertHold.run(...values)
  }

  #writeAllHolds(): void {
    for (const id of this.#unwrittenHolds.keys()) this.#writeHold(id)
  }

  #charge({ token_id: tokenId, user_id: userId, quota, delivered, ended_ms: endedMs }: SettledCall): void {
    const requests = delivered ? 1 : 0
    const accessedSeconds = Math.floor(endedMs / 1000)
    const token = this.#tokens.get(tokenId)
    if (token) {
      token.quota += quota
      token.accessedSeconds = Math.max(token.accessedSeconds, accessedSeconds)
    } else this.#tokens.set(tokenId, { quota, accessedSeconds })
    const user = this.#users.get(userId)
    if (user) {
      user.quota += quota
      user.requests += requests
    } else this.#users.set(userId, { quota, requests })
  }
}

/** Prepared statements for the writes of calls. */
type LedgerStatements = HoldStatements &
  Readonly<
    Record<
      | 'insertUsage'
      | 'insertPlainUsage'
      | 'chargeToken'
      | 'chargeUser'
      | 'token'
      | 'user'
      | 'openHoldsOfToken'
      | 'openHoldsOfUser'
      | 'prune'
      | 'storePriceSet',
      StatementSync
    >
  >

/**
 * Prepares the statements. Amounts are cast to integers, because the driver binds every number as a double.
 */
function prepareLedger(db: DatabaseSync): LedgerStatements {
  return {
    ...prepareHolds(db, { hasTokens: true }),
    insertUsage: db.prepare(insertionOf(ROW_COLUMNS)),
    insertPlainUsage: db.prepare(insertionOf(PLAIN_ROW_COLUMNS)),
    chargeToken: db.prepare(
      `UPDATE tokens SET used_quota = used_quota + CAST(?1 AS INTEGER), remain_quota = remain_quota - CAST(?1 AS INTEGER),
         accessed_time = max(accessed_time, CAST(?2 AS INTEGER))
       WHERE id = ?3`,
    ),
    chargeUser: db.prepare(
      `UPDATE users SET used_quota = used_quota + CAST(?1 AS INTEGER), quota = quota - CAST(?1 AS INTEGER),
         request_count = request_count + CAST(?2 AS INTEGER)
       WHERE id = ?3`,
    ),
    token: db.prepare('SELECT * FROM tokens WHERE id = ?'),
    user: db.prepare('SELECT * FROM users WHERE id = ?'),
    // `total` adds floating point, which is exact up to 2^53; the driver reads no greater integer.
    openHoldsOfToken: db.prepare('SELECT total(amount) AS amount FROM holds WHERE token_id = ?'),
    openHoldsOfUser: db.prepare('SELECT total(amount) AS amount FROM holds WHERE user_id = ?'),
    storePriceSet: db.prepare(
      'INSERT INTO price_sets (version, model, group_name, content) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING',
    ),
    // Ids sort by the start of calls, so the lowest ids are the oldest calls. The inner limit restricts the
    // time of the statement.
    prune: db.prepare(
      'DELETE FROM usage_log WHERE id IN (SELECT id FROM usage_log ORDER BY id LIMIT ?) AND ended_ms < ?',
    ),
  }
}

const insertionOf = (columns: readonly string[]): string =>
  `INSERT INTO usage_log (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})
   ON CONFLICT (id) DO NOTHING`

/** Stores which channel and key a response and its encrypted reasoning came from. Part of settling a call. */
class ProvenanceRows {
  readonly #response: StatementSync
  readonly #reasoning: StatementSync

  constructor(db: DatabaseSync) {
    // The response of a background call already has a row, which the settlement now updates. It stays expired if it was deleted.
    this.#response = db.prepare(
      `INSERT INTO stored_responses (id, user_id, model, group_name, channel, key_tag, upstream_id, tokens, previous_id,
         created_ms, expires_ms)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET channel = excluded.channel, key_tag = excluded.key_tag,
         upstream_id = excluded.upstream_id, tokens = excluded.tokens, created_ms = excluded.created_ms,
         call_id = NULL, rate = NULL`,
    )
    this.#reasoning = db.prepare(
      `INSERT INTO reasoning_origins (hash, channel, key_tag, expires_ms) VALUES (?, ?, ?, ?)
       ON CONFLICT (hash) DO UPDATE SET channel = excluded.channel, key_tag = excluded.key_tag,
         expires_ms = excluded.expires_ms`,
    )
  }

  /**
   * Stores the provenance of a settled call (which channel and key answered). Uses `get`, because `run` would
   * create an object with the number of changes.
   */
  insert(call: SettledCall, { keyTag, response, reasoning }: Provenance): void {
    const expiresMs = call.ended_ms + NATIVE_RETENTION_MS
    if (response) {
      const { id, upstreamId, tokens, previousId } = response
      const { user_id, model, group, channel, ended_ms } = call
      this.#response.get(
        id,
        user_id,
        model,
        group,
        channel,
        keyTag,
        upstreamId,
        tokens,
        previousId,
        ended_ms,
        expiresMs,
      )
    }
    for (const hash of reasoning) this.#reasoning.get(hash, call.channel, keyTag, expiresMs)
  }
}
