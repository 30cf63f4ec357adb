import type { Caller } from '../../accounts/authentication/caller.ts'
import { factsOfBatchHold } from '../../accounts/ledger/batch-hold.ts'
import type { QuotaWaitLimits } from '../../accounts/ledger/call-queue.ts'
import { affordableAmount } from '../../accounts/ledger/charged-balances.ts'
import { findChargedBalances } from '../../accounts/ledger/find-charged-balances.ts'
import type { Ledger } from '../../accounts/ledger/ledger.ts'
import type { OpenHold } from '../../accounts/ledger/open-hold.ts'
import { refuseUnusableKey } from '../../domain/api-key.ts'
import type { Settings } from '../../domain/settings.ts'
import { asGatewayError } from '../../errors.ts'
import type { RowStore } from '../../store/store.ts'
import { type Batch, type BatchEnd, WINDOW_MS } from './batch.ts'

/** Services that holds of batches need. */
export interface HoldingServices {
  readonly ledger: Ledger
  readonly settings: () => Settings
  readonly rows: Pick<RowStore, 'read'>
}

export type HoldBatchInputs = [
  batch: Pick<Batch, 'id' | 'createdMs' | 'facts'>,
  caller: Caller,
  amount: number,
  waiting?: QuotaWaitLimits,
]

/** Reserves quota for a batch; resolves once that is durable. Rejects with `Unaffordable`. */
export async function holdBatch(
  { ledger, settings }: HoldingServices,
  ...[{ id, createdMs, facts }, caller, amount, waiting]: HoldBatchInputs
): Promise<OpenHold> {
  const groups = facts.groups.flatMap((name) => settings().groups.get(name) ?? [])
  const found = await findChargedBalances(ledger.accounts, { ...caller, groups, startedMs: createdMs })
  // What does not wait has to borrow the quota itself, if there is any to hold.
  const payer = waiting || amount === 0 ? found : await ledger.accounts.ensureAffordable(found, amount)
  const holdFacts = factsOfBatchHold(id, createdMs)
  const { account, budgets } = payer
  const hold =
    amount <= affordableAmount(account, budgets) || !waiting
      ? ledger.admit(account, amount, holdFacts, budgets)
      : await ledger.admitInTime(payer, amount, holdFacts, waiting)
  if (await hold.park()) return hold
  const failure = hold.writeFailure ?? new Error('the hold of a batch could not be stored')
  await ledger.release(hold)
  throw failure
}

/**
 * A hold for what is left of a batch whose node is gone; undefined if that is not affordable now. Resolves to how the batch
 * ends if nothing more of it may be made. What a provider has is read in any case, with a hold of nothing if need be.
 */
export async function holdAgain(
  services: HoldingServices,
  batch: Batch,
  amount: number,
  isAtProvider: boolean,
): Promise<OpenHold | BatchEnd | undefined> {
  const found = await findCaller(services.rows, batch)
  if (!found) return 'cancelled'
  const isCancelled = !found.isUsable || batch.cancelMs !== undefined
  const isOver = isCancelled || Date.now() >= batch.createdMs + WINDOW_MS
  if (isOver && !isAtProvider) return isCancelled ? 'cancelled' : 'expired'
  try {
    return await holdBatch(services, batch, found.caller, amount)
  } catch (error) {
    if (!asGatewayError(error)) throw error
    return isOver ? holdBatch(services, batch, found.caller, 0) : undefined
  }
}

/** The key and the user of a batch, and whether they may be used. A key that has expired may. */
export async function findCaller(
  rows: Pick<RowStore, 'read'>,
  { tokenId }: Pick<Batch, 'tokenId'>,
): Promise<{ readonly caller: Caller; readonly isUsable: boolean } | undefined> {
  const found = await rows.read('accountOfToken', { tokenId })
  if (!found) return undefined
  const { token, user } = found
  try {
    refuseUnusableKey(token, user, token.status, 'read')
    return { caller: { token, user }, isUsable: true }
  } catch {
    return { caller: { token, user }, isUsable: false }
  }
}
