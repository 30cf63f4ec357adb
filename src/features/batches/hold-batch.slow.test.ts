import { describe, expect, test } from 'vitest'
import { LEDGER_PLACES } from '../../../test/ledger/banks.ts'
import { factsOf, settlementOf } from '../../../test/ledger/calls.ts'
import type { Settings } from '../../domain/settings.ts'
import { type Batch, newBatchId } from './batch.ts'
import { holdAgain } from './hold-batch.ts'

describe.each(LEDGER_PLACES)('docs/batches.md: Batches of providers, with $name', ({ open }) => {
  /** The hold for what a provider has of a batch of an overdrawn account, after its node is gone. */
  async function holdOf(cancelMs: number | undefined): ReturnType<typeof holdAgain> {
    const { nodes, tokenId } = await open(1)
    const [process] = nodes
    const account = await process?.ledger.accounts.load(tokenId)
    if (!process || !account) throw new Error('no account')
    const { ledger, store } = process
    const payer = await ledger.accounts.ensureAffordable({ account, budgets: [] }, 10)
    await ledger.admit(payer.account, 10, factsOf('call')).settle(settlementOf(2_000_000))
    const services = { ledger, rows: store, settings: () => ({ groups: new Map() }) as unknown as Settings }
    const facts = { groups: [] } as unknown as Batch['facts']
    const batch = { ...newBatchId('openai'), userId: 1, tokenId, cancelMs, facts }
    return holdAgain(services, batch as Batch, 100, true)
  }

  test('what a provider has finished of a cancelled batch is read although its account is overdrawn', async () => {
    expect(await holdOf(1)).toMatchObject({ amount: 0, isParked: true })
  })

  test('a batch of an overdrawn account that goes on waits for quota', async () => {
    expect(await holdOf(undefined)).toBeUndefined()
  })
})
