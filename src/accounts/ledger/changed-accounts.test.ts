import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { factsOf, patiently, settlementOf } from '../../../test/ledger/calls.ts'
import {
  LEDGER_BANKS,
  LEDGER_PLACES,
  type LedgerNode,
  type LedgerProcess,
  type LedgersOfBank,
  type LedgersOnLease,
} from '../../../test/ledger/banks.ts'
import type { Budget } from '../../domain/budget.ts'
import type { TokenChanges } from '../../domain/records/token.ts'
import { findChargedBalances } from './find-charged-balances.ts'
import type { ChargedBalances } from './charged-balances.ts'
import type { OpenHold } from './open-hold.ts'
import { BudgetExceeded, QuotaHeldByOtherCalls } from './quota-refusal.ts'

const MOST = 1_000_000_000_000

async function admit(
  { ledger }: LedgerProcess,
  tokenId: number,
  amount: number,
  id: string,
): Promise<OpenHold> {
  const { accounts } = ledger
  const account = accounts.get(tokenId) ?? (await accounts.load(tokenId))
  if (!account) throw new Error('no account')
  const payer = await patiently(() => accounts.ensureAffordable({ account, budgets: [] }, amount))
  return ledger.admit(payer.account, amount, factsOf(id))
}

type Accounts = Pick<LedgersOfBank, 'userId' | 'tokenId'>

/** Whose budget a call is charged to. */
type BudgetOf = 'group' | 'key' | 'user'

/** The balances of a call with this monthly budget. */
async function payerOf(
  { ledger: { accounts } }: LedgerProcess,
  { tokenId, userId }: Accounts,
  budget: number,
  of: BudgetOf = 'group',
): Promise<ChargedBalances> {
  const budgetOf = (owner: BudgetOf): Budget | undefined =>
    owner === of ? { amount: budget, period: 'month' } : undefined
  return findChargedBalances(accounts, {
    token: { id: tokenId, budget: budgetOf('key') },
    user: { id: userId, budget: budgetOf('user') },
    groups: [{ name: 'default', budget: budgetOf('group') }],
    startedMs: Date.now(),
  })
}

/** Admits a call with this budget, or rejects with the refusal. */
async function called(
  process: LedgerProcess,
  accounts: Accounts,
  {
    budget,
    of,
    amount,
    id,
  }: { readonly budget: number; readonly of?: BudgetOf; readonly amount: number; readonly id: string },
): Promise<OpenHold> {
  const payer = await payerOf(process, accounts, budget, of)
  const { account, budgets } = await patiently(() => process.ledger.accounts.ensureAffordable(payer, amount))
  return process.ledger.admit(account, amount, factsOf(id), budgets)
}

const [ENABLED, DISABLED] = [1, 2] as const

function changeKey({ userId, tokenId }: Accounts, { ledger }: LedgerProcess, fields: TokenChanges) {
  return ledger.changeToken({ userId, tokenId, fields, maxQuota: MOST, nowMs: 0 })
}

/** Stores the monthly budget of a key or user. That of a group is not stored: each call states it. */
async function setBudget(
  accounts: Accounts,
  process: LedgerProcess,
  of: BudgetOf,
  budget: number,
): Promise<void> {
  const limits = { budget: { amount: budget, period: 'month' } } as const
  if (of === 'key') await changeKey(accounts, process, limits)
  if (of === 'user') await process.ledger.changeUser({ userId: accounts.userId, fields: { limits } })
}

/** Makes a key unlimited, begins a stream that holds 300,000, and limits the key to `remain`. */
async function streamOfLimitedKey(
  open: (count: number) => Promise<LedgersOfBank<LedgerProcess>>,
  remain: number,
): Promise<{
  readonly b: LedgerProcess
  readonly userId: number
  readonly tokenId: number
  readonly stream: OpenHold
  readonly changed: (fields: TokenChanges) => Promise<void>
}> {
  const { nodes, userId, tokenId } = await open(2)
  const [a, b = a] = nodes
  if (!a || !b) throw new Error('no processes')
  const changed = async (fields: TokenChanges): Promise<void> => {
    await b.ledger.changeToken({ userId, tokenId, fields, maxQuota: MOST, nowMs: 0 })
    for (let n = 0; n < 3; n += 1) for (const { bankClient } of [a, b]) await bankClient?.resync()
  }
  await changed({ unlimited_quota: true })
  const stream = await admit(a, tokenId, 300_000, 'stream')
  await stream.whenDurable()
  await changed({ unlimited_quota: false, remain_quota: remain })
  return { b, userId, tokenId, stream, changed }
}

describe.each(LEDGER_PLACES)('$name', ({ open }) => {
  test.each<{
    readonly what: string
    readonly change: (bank: LedgersOfBank<LedgerProcess>) => Promise<unknown>
  }>([
    {
      what: 'its key is deleted',
      change: ({ store, userId, tokenId }) =>
        store.write('deleteTokens', { userId, tokenIds: [tokenId], nowSeconds: 1 }),
    },
    {
      what: 'its key is disabled',
      change: ({ store, userId, tokenId }) =>
        store.write('enableOrDisableToken', { userId, tokenId, status: DISABLED, nowMs: 0 }),
    },
    {
      what: 'its key expires',
      change: ({ nodes: [node], userId, tokenId }) => {
        const fields = { expired_time: 1 }
        const change = { userId, tokenId, fields, maxQuota: MOST, nowMs: Date.now() }
        return Promise.resolve(node?.ledger.changeToken(change))
      },
    },
    {
      what: 'its user is disabled',
      change: ({ nodes: [node], userId }) =>
        Promise.resolve(node?.ledger.changeUser({ userId, fields: { status: DISABLED } })),
    },
  ])('a stream grows within its balances after $what', async ({ change }) => {
    const bank = await open(1)
    const [node] = bank.nodes
    if (!node) throw new Error('no process')
    const stream = await admit(node, bank.tokenId, 300_000, 'stream')
    await stream.whenDurable()
    await change(bank)
    await node.bankClient?.resync()
    await vi.waitFor(() => expect(stream.grow(100_000)).toBe(true), { timeout: 60_000, interval: 20 })
    expect(stream.grow(100_001)).toBe(false)
    await stream.settle(settlementOf(400_000))
  })

  test('a stream grows beyond the quota of its key once the key is unlimited', async () => {
    const bank = await open(1)
    const [node] = bank.nodes
    if (!node) throw new Error('no process')
    const { userId, tokenId } = bank
    const stream = await admit(node, tokenId, 400_000, 'stream')
    const change = { userId, tokenId, fields: { unlimited_quota: true }, maxQuota: MOST, nowMs: 0 }
    await node.ledger.changeToken(change)
    await vi.waitFor(() => expect(stream.grow(500_000)).toBe(true), { timeout: 60_000, interval: 20 })
    await stream.settle(settlementOf(900_000))
  })

  test('a key that becomes limited limits the streams and the calls that begin with what streams hold', async () => {
    const { b, tokenId, stream } = await streamOfLimitedKey(open, 400_000)
    await expect(admit(b, tokenId, 100_001, 'more')).rejects.toThrow(/ 100000 remain, 100001 are needed/)
    expect(stream.grow(100_001)).toBe(false)
    await vi.waitFor(() => expect(stream.grow(60_000)).toBe(true), { timeout: 60_000, interval: 20 })
    await expect(admit(b, tokenId, 40_001, 'again')).rejects.toThrow(/ 40000 remain, 40001 are needed/)
    await stream.settle(settlementOf(360_000))
  })

  test('no call begins with a key that becomes limited to less than its streams hold', async () => {
    const { b, tokenId, stream } = await streamOfLimitedKey(open, 200_000)
    await expect(admit(b, tokenId, 1, 'none')).rejects.toThrow(QuotaHeldByOtherCalls)
    await stream.settle(settlementOf(0))
  })

  test('what a stream holds beyond its limited key is not lent to others once the key has more', async () => {
    const { b, userId, tokenId, stream, changed } = await streamOfLimitedKey(open, 200_000)
    // For a moment the other process may borrow first.
    await changeKey({ userId, tokenId }, b, { remain_quota: 350_000 })
    const first = await admit(b, tokenId, 120_000, 'first').catch(() => undefined)
    await first?.settle(settlementOf(0))
    let calls = 0
    const more = async () => (await admit(b, tokenId, 50_001, `more ${(calls += 1)}`)).settle(settlementOf(0))
    await vi.waitFor(
      async () => {
        await changed({})
        await expect(more()).rejects.toThrow(/ 50000 remain, 50001 are needed/)
      },
      { timeout: 60_000, interval: 20 },
    )
    await (await admit(b, tokenId, 50_000, 'rest')).settle(settlementOf(0))
    await stream.settle(settlementOf(0))
  })

  test('a stream that cannot grow because others hold what a raised budget has is told the amounts of now', async () => {
    const bank = await open(2)
    const [a, b = a] = bank.nodes
    if (!a || !b) throw new Error('no processes')
    await (await called(a, bank, { budget: 100, amount: 10, id: 'before' })).settle(settlementOf(7))
    const stream = await called(a, bank, { budget: 100, amount: 40, id: 'stream' })
    const others = await called(b, bank, { budget: 1000, amount: 900, id: 'others' })
    await vi.waitFor(() => {
      expect(stream.grow(200)).toBe(false)
      expect(stream.refusal).toBeInstanceOf(QuotaHeldByOtherCalls)
      expect(stream.refusal?.limit).toMatchObject({ spent: 7, held: 940, left: 53, needed: 200 })
    }, 60_000)
    await Promise.all([stream, others].map((one) => one.settle(settlementOf(0))))
  })

  test('a stream that cannot grow because a budget was lowered is told the amount of now', async () => {
    const bank = await open(2)
    const [a, b = a] = bank.nodes
    if (!a || !b) throw new Error('no processes')
    await (await called(a, bank, { budget: 1000, amount: 10, id: 'before' })).settle(settlementOf(7))
    const stream = await called(a, bank, { budget: 1000, amount: 40, id: 'stream' })
    await stream.whenDurable()
    await a.bankClient?.resync()
    await expect(called(b, bank, { budget: 50, amount: 100, id: 'refused' })).rejects.toThrow(BudgetExceeded)
    await a.bankClient?.resync()
    await vi.waitFor(() => {
      expect(stream.grow(20)).toBe(false)
      expect(stream.refusal).toBeInstanceOf(BudgetExceeded)
      expect(stream.refusal?.limit).toMatchObject({ spent: 7, held: 40, left: 3, needed: 20 })
      expect(stream.refusal?.message).toMatch(/3 of 50 remain, 20 are needed/)
    }, 60_000)
    await stream.settle(settlementOf(0))
  })
})

describe.each(LEDGER_BANKS)('$name', ({ open }) => {
  test.each([
    { before: 100, after: 1000 },
    { before: 1000, after: 500 },
  ])(
    "a call that waits while a group's budget changes from $before to $after does not restore it",
    async ({ before, after }) => {
      const bank = await open(2)
      const [a, b] = bank.nodes
      if (!a || !b) throw new Error('no processes')
      const all = await called(a, bank, { budget: before, amount: before, id: 'all' })
      await all.whenDurable()
      await a.bankClient.resync()
      const waits = { waitMs: 60_000, onLeft: () => () => {} }
      const waiting = a.ledger.admitInTime(await payerOf(a, bank, before), 50, factsOf('waiting'), waits)
      const places = 'select count(distinct (node, ticket))::int as calls from loan_queue'
      await expect.poll(() => bank.sql(places)).toEqual([{ calls: 1 }])
      await delay(300)
      const next = await called(b, bank, { budget: after, amount: 900, id: 'next' }).catch(() => undefined)
      expect(next !== undefined).toBe(after === 1000)
      for (let n = 0; n < 10; n += 1) {
        await delay(50)
        expect(await bank.sql("select amount from budget_periods where owner = 'g:default'")).toEqual([
          { amount: after },
        ])
      }
      await all.settle(settlementOf(0))
      await (await waiting).settle(settlementOf(0))
      await next?.settle(settlementOf(0))
    },
  )

  test('a process without open calls of a key that becomes limited learns that with its next report, even if it missed the announcement', async () => {
    const { nodes, userId, tokenId } = await open(2)
    const [a, b] = nodes
    if (!a || !b) throw new Error('no processes')
    const changed = async (fields: TokenChanges): Promise<void> => {
      await b.ledger.changeToken({ userId, tokenId, fields, maxQuota: MOST, nowMs: 0 })
      await a.bankClient.resync()
    }
    await changed({ unlimited_quota: true })
    await (await admit(a, tokenId, 800_000, 'unlimited')).settle(settlementOf(0))
    await changed({ unlimited_quota: false, remain_quota: 500_000 })
    await expect(admit(a, tokenId, 500_001, 'more')).rejects.toThrow(/ 500000 remain, 500001 are needed/)
    await (await admit(a, tokenId, 500_000, 'all')).settle(settlementOf(0))
  })

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

  const CHANGES: readonly {
    readonly what: string
    readonly change: (bank: LedgersOnLease, b: LedgerNode) => Promise<unknown>
    /** What the hold of 300,000 leaves of the changed account. */
    readonly rest: number
    /** Whose budget the calls are charged to, and its amount, 600,000 before the change. */
    readonly of?: BudgetOf
    readonly budget?: number
  }[] = [
    {
      what: 'a lower quota of its user',
      change: ({ userId }, { ledger }) =>
        ledger.changeUser({ userId, quota: { mode: 'override', value: 400_000, maxQuota: MOST } }),
      rest: 100_000,
    },
    {
      what: 'a lower quota of its key',
      change: (bank, node) => changeKey(bank, node, { remain_quota: 400_000 }),
      rest: 100_000,
    },
    ...(['group', 'key', 'user'] as const).map((of) => ({
      what: `a lower budget of its ${of}`,
      change: (bank: LedgersOnLease, node: LedgerNode) => setBudget(bank, node, of, 400_000),
      of,
      budget: 400_000,
      rest: 100_000,
    })),
    {
      what: 'its key being disabled and enabled',
      async change({ store, userId, tokenId }) {
        for (const status of [DISABLED, ENABLED] as const)
          await store.write('enableOrDisableToken', { userId, tokenId, status, nowMs: 0 })
      },
      rest: 200_000,
    },
    {
      what: 'its user being disabled and enabled',
      async change({ userId }, { ledger }) {
        for (const status of [DISABLED, ENABLED] as const)
          await ledger.changeUser({ userId, fields: { status } })
      },
      rest: 200_000,
    },
    {
      what: 'its key being deleted and restored',
      async change({ store, userId, tokenId, sql }) {
        await store.write('deleteTokens', { userId, tokenIds: [tokenId], nowSeconds: 1 })
        await sql('update tokens set deleted_time = null')
      },
      rest: 200_000,
    },
    {
      what: 'its key becoming unlimited and limited again',
      async change(bank, node) {
        await changeKey(bank, node, { unlimited_quota: true })
        await changeKey(bank, node, { unlimited_quota: false, remain_quota: 400_000 })
      },
      rest: 100_000,
    },
    { what: 'no change', change: () => Promise.resolve(), rest: 200_000 },
  ]

  test.each(CHANGES)(
    'between the restart of a node and the resumption of a background response, $what leaves the response what is lent for it',
    async ({ change, of = 'group', budget = 600_000, rest }) => {
      const bank = await open(2)
      const [before] = bank.nodes
      if (!before) throw new Error('no nodes')
      await setBudget(bank, before, of, 600_000)
      const parked = await called(before, bank, { budget: 600_000, of, amount: 300_000, id: 'parked' })
      expect(await parked.park()).toBe(true)
      await before.bankClient.resync()
      await bank.crash()
      const [a, b] = bank.nodes
      if (!a || !b) throw new Error('no nodes')
      await change(bank, b)
      await Promise.all([a, b].map(({ bankClient }) => bankClient.resync()))
      await expect(called(b, bank, { budget, of, amount: rest + 1, id: 'more' })).rejects.toThrow(
        ` ${rest} remain, ${rest + 1} are needed`,
      )
      const all = await called(b, bank, { budget, of, amount: rest, id: 'rest' })
      const [hold] = await a.ledger.resumeParkedHolds(() => expect.unreachable('its token exists'))
      await expect(called(a, bank, { budget, of, amount: 1, id: 'one' })).rejects.toThrow(
        QuotaHeldByOtherCalls,
      )
      await all.settle(settlementOf(rest))
      await hold?.settle(settlementOf(300_000))
    },
  )

  test('a restarted node keeps the lease of background responses, beside calls that are charged as after a crash, and reports their expected cost before it resumes them', async () => {
    const bank = await open(1)
    const [before] = bank.nodes
    await (await admit(before as LedgerNode, bank.tokenId, 300_000, 'parked')).park()
    await (await admit(before as LedgerNode, bank.tokenId, 50_000, 'open')).whenDurable()
    await bank.crash()
    const rows = await bank.sql('select account, amount, held, estimate from leases order by account')
    expect(rows).toEqual([
      { account: `t:${bank.tokenId}`, amount: 300_000, held: 300_000, estimate: factsOf('').prompt_amount },
      { account: `u:${bank.userId}`, amount: 300_000, held: 300_000, estimate: 0 },
    ])
  })

  test('a background response whose lease was lost and partly lent to others gets what is left when it is resumed', async () => {
    const bank = await open(2)
    const { tokenId } = bank
    const [before] = bank.nodes
    await (await admit(before as LedgerNode, tokenId, 300_000, 'parked')).park()
    await before?.bankClient.resync()
    await bank.sql("update leases set node = 'other', amount = 350000, held = 350000")
    for (const table of ['users', 'tokens']) await bank.sql(`update ${table} set leased = 350000`)
    await bank.crash()
    const [a, b] = bank.nodes
    if (!a || !b) throw new Error('no nodes')
    const [hold] = await a.ledger.resumeParkedHolds(() => expect.unreachable('its token exists'))
    await expect(admit(b, tokenId, 1, 'more')).rejects.toThrow(QuotaHeldByOtherCalls)
    await bank.sql("delete from leases where node = 'other'")
    for (const table of ['users', 'tokens']) await bank.sql(`update ${table} set leased = leased - 350000`)
    await hold?.settle(settlementOf(300_000))
    await (await admit(b, tokenId, 200_000, 'rest')).settle(settlementOf(0))
  })

  test('calls that waited on a node with background responses have no place in the queue once it has started again', async () => {
    const bank = await open(1)
    const [node] = bank.nodes
    if (!node) throw new Error('no node')
    await (await admit(node, bank.tokenId, 300_000, 'parked')).park()
    const waits = { waitMs: 60_000, onLeft: () => () => {} }
    const payer = await payerOf(node, bank, 1_000_000)
    const waiting = node.ledger.admitInTime(payer, 400_000, factsOf('waiting'), waits)
    waiting.catch(() => {})
    const queue = () => bank.sql('select account from loan_queue')
    await vi.waitFor(async () => expect(await queue()).not.toEqual([]), { timeout: 60_000, interval: 20 })
    await bank.crash()
    expect(await queue()).toEqual([])
  })

  test('a node starts with the hold of a background response whose key a restored database does not have', async () => {
    const bank = await open(1)
    const [before] = bank.nodes
    await (await admit(before as LedgerNode, bank.tokenId, 300_000, 'parked')).park()
    await bank.sql('delete from tokens')
    await bank.crash()
    const [node] = bank.nodes
    const unowned: string[] = []
    expect(await node?.ledger.resumeParkedHolds((id) => unowned.push(id))).toEqual([])
    expect(unowned).toEqual(['parked'])
    expect(node?.ledger.parkedHolds.size).toBe(0)
    expect(node?.bankClient.held(`u:${bank.userId}`)).toBe(0)
  })
})
