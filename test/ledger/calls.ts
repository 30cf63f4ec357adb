import type { HoldFacts, Settlement } from '../../src/domain/records/usage.ts'
import { NO_USAGE } from '@sluice/wire/usage'
import type { Account } from '../../src/accounts/ledger/balance.ts'
import type { Ledger } from '../../src/accounts/ledger/ledger.ts'
import { StoreUnavailable } from '../../src/store/store-unavailable.ts'

/** A call whose prompt costs 5 quota units, for a hold. */
export function factsOf(id: string): HoldFacts {
  return {
    id,
    model: 'm',
    requested_model: 'm',
    channel: 'c',
    group: 'default',
    stream: false,
    price_version: 'v1',
    kind: 'chat',
    session: '',
    started_ms: 0,
    prompt_amount: 5,
  }
}

/** A complete response that cost this number of quota units. */
export function settlementOf(quota: number): Settlement {
  return {
    quota,
    reason: 'complete',
    delivered: true,
    ended_ms: 1000,
    usage: NO_USAGE,
    model: 'm',
    group: 'default',
    channel: 'c',
    upstream_model: 'm',
    first_byte_ms: null,
  }
}

/** The balances that a token is charged to; the token must exist. */
export async function accountOf(ledger: Ledger, tokenId: number): Promise<Account> {
  const account = await ledger.accounts.load(tokenId)
  if (!account) throw new Error('no account')
  return account
}

/** Repeats a request for quota while the database of a busy machine answers too late, as a client repeats its call. */
export async function patiently<Value>(request: () => Promise<Value> | Value): Promise<Value> {
  for (;;)
    try {
      return await request()
    } catch (error) {
      if (!(error instanceof StoreUnavailable) || /other calls took/.test(error.message)) throw error
    }
}
