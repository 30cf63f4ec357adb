import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { LEDGER_PLACES, type LedgerProcess } from '../../../test/ledger/banks.ts'
import { factsOf, patiently, settlementOf } from '../../../test/ledger/calls.ts'
import { newToken } from '../../../test/stores/rows.ts'
import { LOAN_RETURN_MS } from './bank-queue.ts'
import { findChargedBalances } from './find-charged-balances.ts'
import type { OpenHold } from './open-hold.ts'
import { affordableAmount } from './charged-balances.ts'
import { BudgetExceeded, InsufficientQuota, QuotaHeldByOtherCalls } from './quota-refusal.ts'

/** Waits that the calls of these tests do not reach. */
const LONG_MS = 60_000
const BUDGET = { amount: 1000, period: 'month' } as const

/** One call: its key, its group's budget, and when its client leaves. */
interface Wanted {
  readonly token?: number
  /** The budget of the key. */
  readonly budget?: { readonly amount: number; readonly period: 'month' }
  /** Whether it is charged to no group. */
  readonly isOfNoGroup?: true
  readonly amount: number
  readonly waitMs?: number
  readonly left?: Promise<void>
}

/** Time after which a call has its place. */
const ARRIVAL_MS = 100

describe.each(LEDGER_PLACES)('$name', ({ open, isLeased }) => {
  /** Until then, a call may get what other processes return. */
  const known = (): Promise<void> => delay(isLeased ? LOAN_RETURN_MS + ARRIVAL_MS : 1)

  async function stage(fields: { unlimited_quota?: boolean } = {}) {
    const { store, userId, tokenId, nodes, sql } = await open(2)
    const other = await store.write('createToken', newToken(userId, { name: 'other', key: 'k2', ...fields }))
    let made = 0
    const call = async (
      { token = tokenId, budget, isOfNoGroup, amount, waitMs = LONG_MS, left }: Wanted,
      at = 0,
    ): Promise<OpenHold> => {
      const { ledger } = nodes[at % nodes.length] as LedgerProcess
      const payer = await findChargedBalances(ledger.accounts, {
        token: { id: token, budget },
        user: { id: userId, budget: undefined },
        groups: isOfNoGroup ? [] : [{ name: 'default', budget: BUDGET }],
        startedMs: Date.now(),
      })
      const facts = factsOf(`call ${(made += 1)}`)
      if (amount <= affordableAmount(payer.account, payer.budgets))
        return ledger.admit(payer.account, amount, facts, payer.budgets)
      return ledger.admitInTime(payer, amount, facts, {
        waitMs,
        onLeft(listener) {
          void left?.then(listener)
          return () => {}
        },
      })
    }
    /** Resolves when so many calls have a place in the queue. */
    const queued = async (count: number): Promise<void> => {
      if (!isLeased) return delay(1)
      const places = (): Promise<unknown> =>
        sql('select count(distinct (node, ticket))::int as calls from loan_queue')
      await expect.poll(places).toEqual([{ calls: count }])
    }
    return { call, queued, tokenId, otherId: other.id, nodes }
  }

  test('a call waits for quota that other calls hold, and is admitted when one of them ends', async () => {
    const { call } = await stage()
    const first = await call({ amount: 900 })
    const second = call({ amount: 600 }, 1)
    await expect(Promise.race([second, delay(50, 'waits')])).resolves.toBe('waits')
    await first.settle(settlementOf(400))
    expect((await second).amount).toBe(600)
  })

  test('calls waiting for quota are admitted in order of arrival, and a call that fits at once does not wait for them', async () => {
    const { call, queued, otherId } = await stage()
    // Both keys are known from now on.
    await (await call({ amount: 1, token: otherId })).settle(settlementOf(0))
    const first = await call({ amount: 900 })
    const order: string[] = []
    const admitted = async (name: string, wanted: Wanted): Promise<void> => {
      const hold = await call(wanted)
      order.push(name)
      await delay(1)
      await hold.settle(settlementOf(0))
    }
    const waiting = [admitted('a', { amount: 800 })]
    await queued(1)
    waiting.push(admitted('b', { amount: 800, token: otherId }))
    await queued(2)
    waiting.push(admitted('c', { amount: 800 }))
    await queued(3)
    await admitted('small', { amount: 100 })
    await first.settle(settlementOf(100))
    await Promise.all(waiting)
    expect(order).toEqual(['small', 'a', 'b', 'c'])
  })

  test('a call is refused with quota_held after its wait, at once if hold_wait is 0, and when its client leaves', async () => {
    const { call } = await stage()
    await call({ amount: 900 })
    await expect(call({ amount: 101, waitMs: 30 })).rejects.toThrow(QuotaHeldByOtherCalls)
    await expect(call({ amount: 101, waitMs: 0 })).rejects.toMatchObject({
      code: 'quota_held',
      retryAfter: 1,
      limit: { kind: 'budget', spent: 0, held: 900, left: 100, needed: 101 },
    })
    const leaving = Promise.withResolvers<void>()
    const call3 = call({ amount: 101, left: leaving.promise })
    leaving.resolve()
    await expect(call3).rejects.toThrow(QuotaHeldByOtherCalls)
  })

  test('a call that exceeds a budget alone is refused at once, and a waiting one when a charge leaves too little for it', async () => {
    const { call } = await stage()
    const first = await call({ amount: 900 })
    await expect(call({ amount: 1001 })).rejects.toThrow(BudgetExceeded)
    await expect(call({ amount: 1_000_001 })).rejects.toThrow(InsufficientQuota)
    const second = call({ amount: 600 })
    const refused = expect(second).rejects.toMatchObject({
      code: 'budget_exceeded',
      limit: { spent: 401, held: 0, left: 599, needed: 600 },
    })
    await delay(20)
    await first.settle(settlementOf(401))
    await refused
  })

  test('when a call ends, a hold that needs to grow gets the freed quota before waiting calls', async () => {
    const { call } = await stage()
    const growing = await call({ amount: 100 })
    const first = await call({ amount: 800 })
    const waiting = call({ amount: 700 })
    await delay(20)
    expect(growing.grow(200)).toBe(false)
    await first.settle(settlementOf(0))
    // The stream repeats its request with its next frame.
    await expect.poll(() => growing.grow(200)).toBe(true)
    expect(growing.amount).toBe(300)
    expect((await waiting).amount).toBe(700)
  })

  test("the error for a hold that cannot grow is quota_held if only other calls' holds prevent it, and otherwise budget_exceeded", async () => {
    const { call } = await stage()
    const growing = await call({ amount: 100 })
    const first = await call({ amount: 800 })
    const refusedBy = (by: number) => () => {
      expect(growing.grow(by)).toBe(false)
      return growing.refusal
    }
    await expect.poll(refusedBy(200)).toMatchObject({
      code: 'quota_held',
      limit: { spent: 0, held: 900, left: 100, needed: 200 },
    })
    expect(growing.refusal?.usedUp).toMatch(
      /^the quota held for this response is used up, .* 100 remain, 200 are needed.* 0 are spent, 900 are held/,
    )
    // Together with what it holds, it would exceed the budget without others, too.
    await expect.poll(refusedBy(901)).toMatchObject({
      code: 'budget_exceeded',
      limit: { spent: 0, held: 900, left: 100, needed: 901 },
    })
    await first.settle(settlementOf(800))
    await expect.poll(refusedBy(150)).toMatchObject({
      code: 'budget_exceeded',
      limit: { spent: 800, held: 100, left: 100, needed: 150 },
    })
  })

  test('a call of a key with a budget that waits for quota does not overtake an earlier call of another key', async () => {
    const { call, queued, otherId } = await stage({ unlimited_quota: true })
    const other = { token: otherId, budget: { ...BUDGET, amount: 10_000_000 }, isOfNoGroup: true } as const
    // Both keys are known from now on.
    await (await call({ amount: 1, isOfNoGroup: true })).settle(settlementOf(0))
    const first = await call({ ...other, amount: 900_000 })
    const order: string[] = []
    const admitted = async (name: string, wanted: Wanted): Promise<void> => {
      const hold = await call(wanted)
      order.push(name)
      await delay(1)
      await hold.settle(settlementOf(0))
    }
    const a = admitted('a', { amount: 400_000, isOfNoGroup: true })
    await queued(1)
    const b = admitted('b', { ...other, amount: 800_000 })
    await queued(2)
    await first.settle(settlementOf(0))
    await Promise.all([a, b])
    expect(order).toEqual(['a', 'b'])
  })

  test('a small call that waits for quota is not admitted before a large one that waits longer, unless the large call is cancelled', async () => {
    const { call, queued, otherId } = await stage()
    await (await call({ amount: 1, token: otherId })).settle(settlementOf(0))
    const [, second] = [await call({ amount: 500 }), await call({ amount: 400 })]
    const leaving = Promise.withResolvers<void>()
    const large = call({ amount: 800, left: leaving.promise })
    const refused = expect(large).rejects.toThrow(QuotaHeldByOtherCalls)
    await queued(1)
    const small = call({ amount: 300, token: otherId }, 1)
    await queued(2)
    await known()
    await second.settle(settlementOf(0))
    await expect(Promise.race([small, delay(300, 'waits')])).resolves.toBe('waits')
    // It is affordable at once.
    await (await call({ amount: 400 })).settle(settlementOf(0))
    leaving.resolve()
    await refused
    expect((await small).amount).toBe(300)
  })

  test('calls of several keys that wait for quota in several processes are admitted in order of arrival', async () => {
    const { call, queued, tokenId, otherId } = await stage()
    for (const token of [tokenId, otherId])
      for (const at of [0, 1]) await (await call({ amount: 1, token }, at)).settle(settlementOf(0))
    const first = await call({ amount: 900 })
    const order: number[] = []
    const waiting: Promise<void>[] = []
    // Any two of them exceed the budget.
    for (const [index, amount] of [800, 510, 990, 600, 700, 501, 850, 560].entries()) {
      const admitted = async (): Promise<void> => {
        const hold = await call(
          { amount, token: [tokenId, otherId, otherId][index % 3] ?? tokenId },
          index % 2,
        )
        order.push(index)
        await delay(1)
        await hold.settle(settlementOf(0))
      }
      waiting.push(admitted())
      await queued(index + 1)
    }
    await known()
    await first.settle(settlementOf(0))
    await Promise.all(waiting)
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
  })

  test('a call that arrives as another ends does not take what a waiting call needs', async () => {
    const { call, queued } = await stage()
    const first = await call({ amount: 900 })
    const waiting = call({ amount: 600 })
    await queued(1)
    await known()
    void first.settle(settlementOf(0))
    await expect(call({ amount: 600, waitMs: 0 })).rejects.toThrow(QuotaHeldByOtherCalls)
    expect((await waiting).amount).toBe(600)
  })

  test('a call with hold_wait 0 does not wait for other calls to end', async () => {
    const { call } = await stage()
    await call({ amount: 1 }, 1)
    await call({ amount: 900 })
    const tookMs = async (): Promise<number> => {
      const beganMs = performance.now()
      await expect(call({ amount: 600, waitMs: 0 }, 1)).rejects.toThrow(QuotaHeldByOtherCalls)
      return performance.now() - beganMs
    }
    // On a busy machine, others may take longer to return what they do not need.
    await expect.poll(tookMs).toBeLessThan(LOAN_RETURN_MS - 100)
  })

  test('a call with hold_wait 0 gets quota that other processes have borrowed and do not hold', async () => {
    const { call } = await stage()
    await (await call({ amount: 1 }, 1)).settle(settlementOf(0))
    const held = await call({ amount: 50 })
    await (await call({ amount: 940 })).settle(settlementOf(0))
    // On a busy machine, the other process may return what it has borrowed too late for one call.
    const got = await vi.waitFor(() => call({ amount: 900, waitMs: 0 }, 1), { timeout: 60_000, interval: 50 })
    expect(got.amount).toBe(900)
    await held.settle(settlementOf(0))
  })

  test("a waiting call is refused at once if a charge leaves its key too little, even while others hold its user's quota", async () => {
    const { call, otherId } = await stage()
    const first = await call({ amount: 80, token: otherId, isOfNoGroup: true })
    await call({ amount: 499_990, isOfNoGroup: true })
    await call({ amount: 499_900, token: otherId, isOfNoGroup: true })
    const waiting = call({ amount: 200, token: otherId, isOfNoGroup: true })
    const refused = expect(waiting).rejects.toThrow(InsufficientQuota)
    await delay(20)
    await first.settle(settlementOf(499_850))
    await refused
  })

  test('raising a hold waits until another call ends, and the hold can grow further only within free quota', async () => {
    const { call } = await stage()
    const rising = await call({ amount: 100 })
    const first = await call({ amount: 800 })
    const raised = rising.raiseTo(400, { waitMs: LONG_MS, isOver: () => false })
    await delay(20)
    expect(rising.amount).toBe(100)
    await first.settle(settlementOf(0))
    await expect(raised).resolves.toBeUndefined()
    expect([rising.amount, rising.taken]).toEqual([400, 400])
    await expect.poll(() => rising.grow(600)).toBe(true)
    expect([rising.amount, rising.grow(1)]).toEqual([1000, false])
  })

  test('raising a hold fails with quota_held while other calls hold the quota, and otherwise with the exceeded budget', async () => {
    const { call } = await stage()
    const rising = await call({ amount: 100 })
    const first = await call({ amount: 800 })
    const raise = (amount: number, waitMs: number) => rising.raiseTo(amount, { waitMs, isOver: () => false })
    await expect(raise(201, 0)).resolves.toMatchObject({
      code: 'quota_held',
      limit: { spent: 0, held: 900, left: 100, needed: 101 },
    })
    await expect(raise(1001, LONG_MS)).resolves.toBeInstanceOf(BudgetExceeded)
    await first.settle(settlementOf(0))
    // A hold that was refused does not grow later.
    expect(rising.amount).toBe(100)
    expect((await call({ amount: 900 })).amount).toBe(900)
  })

  test('the holds of all processes together never exceed the quota', async () => {
    const { call, nodes } = await stage()
    const holds: OpenHold[] = []
    const calls = Array.from({ length: 60 }, async (_, at) => {
      const hold = await patiently(() => call({ amount: 100 + ((at * 37) % 150) }, at))
      holds.push(hold)
      const sum = nodes
        .flatMap(({ ledger }) => [...ledger.openHolds])
        .reduce((all, { amount }) => all + amount, 0)
      expect(sum).toBeLessThanOrEqual(1000)
      await delay(5)
      await hold.settle(settlementOf(10))
    })
    await Promise.all(calls)
    expect(holds).toHaveLength(60)
  })
})
