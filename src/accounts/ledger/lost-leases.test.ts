import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { factsOf, patiently, settlementOf } from '../../../test/ledger/calls.ts'
import { LEDGER_BANKS, type LedgerNode, type LedgersOnLease } from '../../../test/ledger/banks.ts'
import { newToken } from '../../../test/stores/rows.ts'
import type { Budget } from '../../domain/budget.ts'
import { affordableAmount } from './charged-balances.ts'
import { findChargedBalances } from './find-charged-balances.ts'
import type { OpenHold } from './open-hold.ts'

const PATIENCE = { timeout: 60_000, interval: 20 } as const

/** Admits a call on a node; `budget` is the monthly budget of its group. */
async function admit(
  { ledger, accounts }: LedgerNode,
  { tokenId, userId }: Pick<LedgersOnLease, 'tokenId' | 'userId'>,
  { id, amount, budget }: { readonly id: string; readonly amount: number; readonly budget?: number },
): Promise<OpenHold> {
  const ofGroup: Budget | undefined = budget === undefined ? undefined : { amount: budget, period: 'month' }
  const payer = await findChargedBalances(accounts, {
    token: { id: tokenId, budget: undefined },
    user: { id: userId, budget: undefined },
    groups: [{ name: 'default', budget: ofGroup }],
    startedMs: Date.now(),
  })
  const { account, budgets } = await patiently(() => accounts.ensureAffordable(payer, amount))
  return ledger.admit(account, amount, factsOf(id), budgets)
}

/** What nodes but `node` have borrowed, by the kind of account. */
async function lentOf({ sql }: LedgersOnLease, kind: 't' | 'u' | 'b', node = ''): Promise<number> {
  const [row] = await sql(
    `select coalesce(sum(amount), 0)::int as amount from leases where account like '${kind}:%' and node <> '${node}'`,
  )
  return Number(row?.['amount'])
}

/**
 * The bank gives up the only node that borrows, as after 16 minutes without a report; another node, `other`, then
 * borrows `taken` of the key and its user.
 */
async function loseNode({ sql, tokenId, userId }: LedgersOnLease, taken = 0): Promise<void> {
  const lose = `do $$ begin
    update nodes set expires = now() - interval '16 minutes' where node in (select node from leases where amount > 0);
    perform bank_look_after_lost('onlooker');
    if exists (select from leases) then raise exception 'an account is locked'; end if;
    insert into leases (account, node, epoch, amount, held)
      select 't:' || id, 'other', epoch, ${taken}, ${taken} from tokens where id = ${tokenId} and ${taken} > 0
      union all select 'u:' || id, 'other', epoch, ${taken}, ${taken} from users where id = ${userId} and ${taken} > 0;
    update tokens set leased = leased + ${taken} where id = ${tokenId};
    update users set leased = leased + ${taken} where id = ${userId};
  end $$`
  await vi.waitFor(() => sql(lose), PATIENCE)
}

/** Locks the row of a token in another session, for a minute at most. Returns what unlocks it. */
async function lockToken({ sql }: LedgersOnLease, tokenId: number): Promise<() => Promise<unknown>> {
  const ofToken = `from tokens where id = ${tokenId} for update`
  await sql('create table unlocked (since int)')
  const locked = sql(`do $$ begin
    perform 1 ${ofToken};
    for n in 1..1200 loop exit when exists (select from unlocked); perform pg_sleep(0.05); end loop;
  end $$`)
  locked.catch(() => {})
  await expect.poll(async () => (await sql(`select 1 ${ofToken} skip locked`)).length, PATIENCE).toBe(0)
  return () => Promise.all([locked, sql('insert into unlocked values (1)')])
}

describe.each(LEDGER_BANKS)('$name', ({ open }) => {
  test('what a lost node holds of a budget is lent to it again when it is back, and to no other node', async () => {
    const bank = await open(2)
    const [a, b] = bank.nodes as [LedgerNode, LedgerNode]
    const hold = await admit(a, bank, { id: 'held', amount: 300, budget: 1_000 })
    await hold.whenDurable()
    await a.bankClient.resync()
    await loseNode(bank)
    await a.bankClient.resync()
    await expect.poll(() => lentOf(bank, 'b'), PATIENCE).toBeGreaterThanOrEqual(300)
    const call = { id: 'more', budget: 1_000 } as const
    await expect(admit(b, bank, { ...call, amount: 701 })).rejects.toThrow(/ 700 remain, 701 are needed/)
    await (await admit(b, bank, { ...call, amount: 700 })).settle(settlementOf(0))
    await hold.settle(settlementOf(300))
  })

  test('what is borrowed again for a call does not restore the budget that the call knows', async () => {
    const bank = await open(2)
    const [a, b] = bank.nodes as [LedgerNode, LedgerNode]
    // A call that is admitted by a lease that was there knows the amount.
    await (await admit(a, bank, { id: 'before', amount: 10, budget: 1_000 })).settle(settlementOf(0))
    const hold = await admit(a, bank, { id: 'held', amount: 100, budget: 1_000 })
    await hold.whenDurable()
    await (await admit(b, bank, { id: 'lower', amount: 10, budget: 500 })).settle(settlementOf(0))
    for (const { bankClient } of [a, b]) await bankClient.resync()
    await loseNode(bank)
    await a.bankClient.resync()
    await expect.poll(() => lentOf(bank, 'b'), PATIENCE).toBeGreaterThanOrEqual(100)
    expect(await bank.sql('select amount from budget_periods')).toEqual([{ amount: 500 }])
    await hold.settle(settlementOf(0))
  })

  test('a budget that is raised before a hold of it is reported leaves the hold what it needs', async () => {
    const bank = await open(1)
    const [node] = bank.nodes as [LedgerNode]
    const payer = await findChargedBalances(node.accounts, {
      token: { id: bank.tokenId, budget: { amount: 1_000, period: 'month' } },
      user: { id: bank.userId, budget: undefined },
      groups: [],
      startedMs: Date.now(),
    })
    const setTo = (amount: number) =>
      bank.sql(`update tokens set budget = ${amount}, budget_period = 'month'`)
    await setTo(1_000)
    const { account, budgets } = await node.accounts.ensureAffordable(payer, 300)
    const hold = node.ledger.admit(account, 300, factsOf('held'), budgets)
    await setTo(2_000)
    await node.bankClient.resync()
    await expect.poll(() => lentOf(bank, 'b'), PATIENCE).toBeGreaterThanOrEqual(300)
    await hold.settle(settlementOf(0))
  })

  test('a lost node borrows for its holds what other nodes have left, and the rest when they return it', async () => {
    const bank = await open(1)
    const [node] = bank.nodes as [LedgerNode]
    const hold = await admit(node, bank, { id: 'held', amount: 300_000 })
    await hold.whenDurable()
    await node.bankClient.resync()
    await loseNode(bank, 350_000)
    await node.bankClient.resync()
    await expect.poll(() => lentOf(bank, 't', 'other'), PATIENCE).toBe(150_000)
    await bank.sql(`delete from leases where node = 'other'`)
    await bank.sql(`update users set leased = leased - 350000`)
    await bank.sql(`update tokens set leased = leased - 350000`)
    await node.bankClient.resync()
    for (const kind of ['t', 'u'] as const)
      await expect.poll(() => lentOf(bank, kind), PATIENCE).toBeGreaterThanOrEqual(300_000)
    await hold.settle(settlementOf(0))
  })

  test('what calls hold of a user who becomes limited is borrowed, also after the node has lost its connection', async () => {
    const bank = await open(1)
    const [node] = bank.nodes as [LedgerNode]
    await bank.sql('update users set unlimited_quota = 1')
    const hold = await admit(node, bank, { id: 'held', amount: 300_000 })
    await hold.whenDurable()
    node.accounts.onAllChanged()
    await node.bankClient.resync()
    await bank.sql('update users set unlimited_quota = 0, quota = 400000')
    await node.bankClient.resync()
    await expect.poll(() => lentOf(bank, 'u'), PATIENCE).toBeGreaterThanOrEqual(300_000)
    await hold.settle(settlementOf(0))
  })

  /** Two calls of a user who becomes limited; the later one is by a key for which nothing can be borrowed. */
  async function callsOfTwoKeys(
    bank: LedgersOnLease,
    withoutKey: (tokenId: number) => Promise<unknown>,
  ): Promise<readonly OpenHold[]> {
    const [node] = bank.nodes as [LedgerNode]
    const { id: other } = await bank.store.write('createToken', newToken(bank.userId, { key: 'other' }))
    await bank.sql('update users set unlimited_quota = 1')
    const holds: OpenHold[] = []
    for (const tokenId of [bank.tokenId, other])
      holds.push(await admit(node, { ...bank, tokenId }, { id: `of ${tokenId}`, amount: 300_000 }))
    await Promise.all(holds.map((hold) => hold.whenDurable()))
    await node.bankClient.resync()
    await withoutKey(other)
    await bank.sql('update users set unlimited_quota = 0, quota = 700000')
    node.accounts.onChanged(`u:${bank.userId}`)
    node.bankClient.reportSoon()
    return holds
  }

  test('what calls of several keys hold of their user is borrowed while one of the keys is locked', async () => {
    const bank = await open(1)
    let unlock = (): Promise<unknown> => Promise.resolve()
    const holds = await callsOfTwoKeys(bank, async (tokenId) => (unlock = await lockToken(bank, tokenId)))
    await expect.poll(() => lentOf(bank, 'u'), PATIENCE).toBeGreaterThanOrEqual(600_000)
    await unlock()
    await Promise.all(holds.map((hold) => hold.settle(settlementOf(0))))
  })

  test('nothing is requested for holds while the bank cannot be reached', async () => {
    const bank = await open(1)
    const [node] = bank.nodes as [LedgerNode]
    const isConnected = vi.spyOn(node.bankClient, 'isConnected', 'get').mockReturnValue(false)
    const acquire = vi.spyOn(node.bankClient, 'acquire')
    const holds = await callsOfTwoKeys(bank, () => Promise.resolve(acquire.mockClear()))
    await delay(600)
    expect(acquire).not.toHaveBeenCalled()
    isConnected.mockRestore()
    await expect.poll(() => lentOf(bank, 'u'), PATIENCE).toBeGreaterThanOrEqual(600_000)
    await Promise.all(holds.map((hold) => hold.settle(settlementOf(0))))
  })

  test('what calls hold of their user is borrowed if the database does not have one of their keys', async () => {
    const bank = await open(1)
    const [node] = bank.nodes as [LedgerNode]
    const [held, unowned] = await callsOfTwoKeys(bank, (tokenId) =>
      bank.sql(`delete from tokens where id = ${tokenId}`),
    )
    await expect.poll(() => lentOf(bank, 'u'), PATIENCE).toBeGreaterThanOrEqual(600_000)
    await expect.poll(() => node.accounts.get(bank.tokenId), PATIENCE).toBeDefined()
    // Nothing is requested for the missing key for ever, and accounts of others stay cached.
    const acquire = vi.spyOn(node.bankClient, 'acquire')
    await delay(600)
    expect(acquire.mock.calls.length).toBeLessThan(3)
    await held?.settle(settlementOf(0))
    await node.ledger.release(unowned!)
  })

  test('a node whose lease the bank has ended does not spend it when it is back while the account is locked', async () => {
    const bank = await open(1)
    const [node] = bank.nodes as [LedgerNode]
    await (await admit(node, bank, { id: 'before', amount: 1_000 })).settle(settlementOf(0))
    await node.bankClient.flush()
    const account = node.accounts.get(bank.tokenId)!
    expect(affordableAmount(account)).toBeGreaterThan(0)
    const unlock = await lockToken(bank, bank.tokenId)
    await bank.sql("delete from leases where account like 't:%'")
    // A time of day that has moved is a pause that the bank may have measured.
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 10_000 })
    try {
      expect(node.bankClient.isConnected).toBe(false)
      await vi.waitFor(() => expect(node.bankClient.isConnected).toBe(true), PATIENCE)
      expect(affordableAmount(account)).toBe(0)
    } finally {
      vi.useRealTimers()
      await unlock()
    }
  })

  test('a node that stops states what it holds for calls that go on without it', async () => {
    const bank = await open(1)
    const [node] = bank.nodes as [LedgerNode]
    const hold = await admit(node, bank, { id: 'parked', amount: 300_000 })
    expect(await hold.park()).toBe(true)
    await node.close()
    expect(await bank.sql('select account, amount, held from leases order by account')).toEqual(
      [`t:${bank.tokenId}`, `u:${bank.userId}`].map((account) => ({
        account,
        amount: 300_000,
        held: 300_000,
      })),
    )
  })
})
