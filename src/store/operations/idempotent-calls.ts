import { PostgresAdapter, sql } from 'kysely'
import type { KeptKind } from '../../domain/kept.ts'
import type { Db } from './operation.ts'

/** A call with an idempotency key, and the request that claims it, to be sent to the provider. */
interface ClaimedCall {
  readonly lookup: string
  readonly userId: number
  readonly fingerprint: string
  readonly claim: string
  readonly node: string
  readonly nowMs: number
  /** Milliseconds for which the process that claims the call counts as running, unless it renews the claim. */
  readonly leaseMs: number
  readonly expiresMs: number
}

/** The time by which claims lapse, and the end of a claim that is made or renewed now. */
interface LeaseTimes {
  readonly nowMs: number
  readonly untilMs: number
}

/**
 * A shared database measures leases by its own clock, so that a node whose clock is wrong takes over no call that another
 * node is making. Claims in SQLite have no lease: they lapse when the process starts again (`lapseClaims`).
 */
async function leaseTimes(db: Db, leaseMs: number): Promise<LeaseTimes> {
  if (!(db.getExecutor().adapter instanceof PostgresAdapter))
    return { nowMs: 0, untilMs: Number.MAX_SAFE_INTEGER }
  const { rows } = await sql<{ now: number }>`
    select (extract(epoch from clock_timestamp()) * 1000)::bigint as now`.execute(db)
  const nowMs = rows[0]?.now ?? 0
  return { nowMs, untilMs: nowMs + leaseMs }
}

/**
 * What is done with a request that has an idempotency key. claimed: send the call to the provider; under way:
 * wait for an earlier request with this key; over: return the stored answer, if there is one; conflict:
 * refuse, because the key was used with another path or body.
 */
export type ClaimState = 'claimed' | 'under way' | 'over' | 'conflict'

/**
 * Claims a call for this request, unless an earlier request with the same key has claimed it. An earlier
 * claim is taken over if its process has stopped renewing it and no answer was stored.
 */
export async function claimCall(
  db: Db,
  { lookup, userId, fingerprint, claim, node, nowMs, leaseMs, expiresMs }: ClaimedCall,
): Promise<ClaimState> {
  const lease = await leaseTimes(db, leaseMs)
  const row = await db
    .selectFrom('idempotent_calls')
    .select(['fingerprint', 'until_ms', 'expires_ms'])
    .where('lookup', '=', lookup)
    .executeTakeFirst()
  const isPresent = row && (row.expires_ms > nowMs || (row.until_ms ?? 0) > lease.nowMs)
  const earlier = isPresent ? row : undefined
  if (earlier) {
    if (earlier.fingerprint !== fingerprint) return 'conflict'
    if (earlier.until_ms === null || (await isKept(db, lookup, nowMs))) return 'over'
    if (earlier.until_ms > lease.nowMs) return 'under way'
  }
  const values = { user_id: userId, fingerprint, claim, node, until_ms: lease.untilMs, expires_ms: expiresMs }
  await db
    .insertInto('idempotent_calls')
    .values({ lookup, ...values })
    .onConflict((on) => on.column('lookup').doUpdateSet(values))
    .execute()
  return 'claimed'
}

/** Extends the claims of a process that is still running. Resolves to those that it still has. */
export async function renewClaims(
  db: Db,
  {
    lookups,
    node,
    leaseMs,
  }: { readonly lookups: readonly string[]; readonly node: string; readonly leaseMs: number },
): Promise<string[]> {
  const { untilMs } = await leaseTimes(db, leaseMs)
  const renewed = await db
    .updateTable('idempotent_calls')
    .set({ until_ms: untilMs })
    .where('lookup', 'in', lookups)
    .where('node', '=', node)
    .where('until_ms', 'is not', null)
    .returning('lookup')
    .execute()
  return renewed.map(({ lookup }) => lookup)
}

/** The claim of a user on a call. */
interface CallClaim extends Pick<ClaimedCall, 'lookup' | 'userId' | 'claim'> {}

/**
 * Records that a claimed call has ended, and until when that is known: as long as its answer is kept. If that was not
 * stored, further requests with the same key are refused.
 */
export async function endClaim(
  db: Db,
  { lookup, claim, expiresMs }: CallClaim & Pick<ClaimedCall, 'expiresMs'>,
): Promise<void> {
  await db
    .updateTable('idempotent_calls')
    .set({ until_ms: null, expires_ms: expiresMs })
    .where('lookup', '=', lookup)
    .where('claim', '=', claim)
    .execute()
}

/** Removes a claim, so that the next request with the same key is sent to the provider. */
export async function releaseClaim(db: Db, { lookup, claim }: CallClaim): Promise<void> {
  await db
    .deleteFrom('idempotent_calls')
    .where('lookup', '=', lookup)
    .where('claim', '=', claim)
    .where('until_ms', 'is not', null)
    .execute()
}

/**
 * Ends the claims of calls that an earlier run of a process left behind; with `node` undefined, the claims of
 * all processes.
 */
export async function lapseClaims(db: Db, { node }: { readonly node: string | undefined }): Promise<void> {
  const lapsed = db.updateTable('idempotent_calls').set({ until_ms: 0 }).where('until_ms', 'is not', null)
  await (node === undefined ? lapsed : lapsed.where('node', '=', node)).execute()
}

/** Removes at most `limit` expired calls; resolves to their number. */
export async function pruneIdempotentCalls(
  db: Db,
  { nowMs, limit }: { readonly nowMs: number; readonly limit: number },
): Promise<number> {
  const lease = await leaseTimes(db, 0)
  const result = await db
    .deleteFrom('idempotent_calls')
    .where('lookup', 'in', (eb) =>
      eb
        .selectFrom('idempotent_calls')
        .select('lookup')
        .where('expires_ms', '<=', nowMs)
        .where((or) => or('until_ms', 'is', null).or('until_ms', '<=', lease.nowMs))
        .limit(limit),
    )
    .executeTakeFirst()
  return Number(result.numDeletedRows)
}

async function isKept(db: Db, lookup: string, nowMs: number): Promise<boolean> {
  const kept = db.selectFrom('kept').select('key')
  const found = kept.where('kind', '=', 'idempotency' satisfies KeptKind).where('key', '=', lookup)
  return (await found.where('expires_ms', '>', nowMs).executeTakeFirst()) !== undefined
}
