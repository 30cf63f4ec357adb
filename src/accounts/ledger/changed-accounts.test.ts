import { describe, expect, test } from 'vitest'
import { factsOf, settlementOf } from '../../../test/ledger-calls.ts'
import { LEDGER_BANKS, type LedgerNode } from '../../../test/ledger-banks.ts'
import type { OpenHold } from './open-hold.ts'

const MOST = 1_000_000_000_000

async function admit(
  { ledger, accounts }: LedgerNode,
  tokenId: number,
  amount: number,
  id: string,
): Promise<OpenHold> {
  const account = accounts.get(tokenId) ?? (await accounts.load(tokenId))
  if (!account) throw new Error('no account')
  const payer = await accounts.ensureAffordable({ account, budgets: [] }, amount)
  return ledger.admit(payer.account, amount, factsOf(id))
}

describe.each(LEDGER_BANKS)('$name', ({ open }) => {
  test('a lower quota of a user leaves the hold of a background response what is lent for it', async () => {
    const {
      userId,
      tokenId,
      nodes: [a, b],
    } = await open(2)
    if (!a || !b) throw new Error('no nodes')
    const hold = await admit(a, tokenId, 300_000, 'parked')
    expect(await hold.park()).toBe(true)
    await a.bankClient.resync()
    const quota = { mode: 'override', value: 400_000, maxQuota: MOST } as const
    await a.ledger.changeUser({ userId, quota })
    await Promise.all([a, b].map(({ bankClient }) => bankClient.resync()))
    await expect(admit(b, tokenId, 100_001, 'more')).rejects.toThrow(/ 100000 remain, 100001 are needed/)
    const rest = await admit(b, tokenId, 100_000, 'rest')
    await Promise.all([hold, rest].map((one) => one.settle(settlementOf(one.amount))))
  })
})

describe('workers of one machine', () => {
  const workers = LEDGER_BANKS.find(({ name }) => name === 'workers of one machine')

  test('a lower quota leaves a background response what is lent for it, while no worker continues the response', async () => {
    const bank = await workers?.open(2)
    if (!bank) throw new Error('no bank')
    const { userId, tokenId, nodes } = bank
    const [before] = nodes
    if (!before) throw new Error('no worker')
    expect(await (await admit(before, tokenId, 300_000, 'parked')).park()).toBe(true)
    await bank.crash()
    const [a, b] = nodes
    if (!a || !b) throw new Error('no workers')
    const quota = { mode: 'override', value: 400_000, maxQuota: MOST } as const
    await a.ledger.changeUser({ userId, quota })
    await expect(admit(b, tokenId, 100_001, 'more')).rejects.toThrow(/ 100000 remain, 100001 are needed/)
    const [hold] = await a.ledger.resumeParkedHolds(() => expect.unreachable('its token exists'))
    const rest = await admit(b, tokenId, 100_000, 'rest')
    await hold?.settle(settlementOf(300_000))
    await rest.settle(settlementOf(100_000))
  })
})
