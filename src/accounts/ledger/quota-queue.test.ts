import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { factsOf, settlementOf } from '../../../test/ledger/calls.ts'
import { newToken, newUser, storeWithAccount } from '../../../test/stores/rows.ts'
import { factsOfBatchHold, LineReserve } from './batch-hold.ts'
import { findChargedBalances } from './find-charged-balances.ts'
import { Ledger } from './ledger.ts'
import type { OpenHold } from './open-hold.ts'
import { affordableAmount } from './charged-balances.ts'
import { InsufficientQuota, QuotaHeldByOtherCalls } from './quota-refusal.ts'

/** A wait that the calls of these tests do not reach. */
const LONG_MS = 60_000
const BUDGET = { amount: 1000, period: 'month' } as const

/** A ledger with two users, who have 500,000 each, and a group with a budget of 1,000. */
async function stage() {
  const { store, userId, tokenId } = await storeWithAccount()
  const user = await store.write('createUser', newUser({ username: 'other' }))
  const token = await store.write('createToken', newToken(user.id, { key: 'other key' }))
  const ledger = new Ledger(store, 'run')
  let made = 0
  const payerOf = (of: 'first' | 'second', isOfGroup = false) =>
    findChargedBalances(ledger.accounts, {
      token: { id: of === 'first' ? tokenId : token.id, budget: undefined },
      user: { id: of === 'first' ? userId : user.id, budget: undefined },
      groups: isOfGroup ? [{ name: 'sales', budget: BUDGET }] : [],
      startedMs: Date.now(),
    })
  const call = async (of: 'first' | 'second', amount: number, isOfGroup = false): Promise<OpenHold> => {
    const payer = await payerOf(of, isOfGroup)
    const facts = factsOf(`call ${(made += 1)}`)
    if (amount <= affordableAmount(payer.account, payer.budgets))
      return ledger.admit(payer.account, amount, facts, payer.budgets)
    return ledger.admitInTime(payer, amount, facts, { waitMs: LONG_MS, onLeft: () => () => {} })
  }
  const batch = async (amount: number): Promise<OpenHold> => {
    const { account } = await payerOf('first')
    const hold = ledger.admit(account, amount, factsOfBatchHold(`batch_${(made += 1)}`, 1))
    expect(await hold.park()).toBe(true)
    return hold
  }
  const waitingBatch = async (amount: number): Promise<OpenHold> =>
    ledger.admitInTime(await payerOf('first'), amount, factsOfBatchHold('batch_waiting', 1), {
      waitMs: LONG_MS,
      onLeft: () => () => {},
    })
  /** Adds quota to the first user and its key, and checks all calls that wait. */
  const retry = async (added: number): Promise<void> => {
    const { account } = await payerOf('first')
    account.token.remain += added
    account.user.remain += added
    await ledger.changeUser({ userId, fields: {} })
  }
  return { ledger, call, batch, waitingBatch, retry }
}

const waits = (waiting: Promise<unknown>): Promise<unknown> => Promise.race([waiting, delay(50, 'waits')])

describe('docs/ledger.md: Waiting for other calls', () => {
  test("a call that waits for a group's budget does not overtake an earlier one that lacks its user's quota", async () => {
    const { call } = await stage()
    const ofGroup = await call('first', 900, true)
    const ofUser = await call('second', 499_800)
    const early = call('second', 400)
    await delay(1)
    const late = call('second', 200, true)
    await delay(1)
    await ofGroup.settle(settlementOf(0))
    await expect(waits(late)).resolves.toBe('waits')
    await ofUser.settle(settlementOf(499_500))
    expect((await early).amount).toBe(400)
    await (await early).settle(settlementOf(0))
    expect((await late).amount).toBe(200)
  })

  test('a call that no longer waits lets later calls pass, whichever of their balances it had lacked', async () => {
    const { call } = await stage()
    const ofGroup = await call('first', 900, true)
    const ofUser = await call('second', 499_800)
    const early = call('second', 400)
    const refused = expect(early).rejects.toThrow(InsufficientQuota)
    await delay(1)
    const late = call('second', 200, true)
    await delay(1)
    await ofGroup.settle(settlementOf(0))
    await ofUser.settle(settlementOf(499_700))
    await refused
    expect((await late).amount).toBe(200)
  })

  test('a call that a new batch makes unaffordable is refused at once', async () => {
    const { call, batch } = await stage()
    await call('first', 250_000)
    let refusal: unknown
    call('first', 300_000).catch((error: unknown) => (refusal = error))
    await delay(1)
    await batch(220_000)
    expect(refusal).toBeInstanceOf(InsufficientQuota)
  })

  test('a call that the growth of a batch makes unaffordable is refused at once', async () => {
    const { call, batch } = await stage()
    const whole = await batch(100_000)
    await call('first', 150_000)
    let refusal: unknown
    call('first', 300_000).catch((error: unknown) => (refusal = error))
    await delay(1)
    new LineReserve(whole, 0).holdFor(120_000, factsOf('line'))
    await delay(1)
    expect(refusal).toBeInstanceOf(InsufficientQuota)
  })

  test('a batch that no longer waits and a call behind it are each admitted once', async () => {
    const { ledger, call, waitingBatch, retry } = await stage()
    const running = await call('first', 450_000)
    const batch = waitingBatch(200_000)
    await delay(1)
    const late = call('first', 100_000)
    await delay(1)
    await retry(500_000)
    await Promise.all([batch, late])
    expect(ledger.openHolds.size).toBe(3)
    expect(running.account.user.held).toBe(750_000)
  })

  test('a hold is raised by what is missing beside what it got while it waited to grow', async () => {
    const { call } = await stage()
    const growing = await call('first', 100_000)
    const [large, small] = [await call('first', 350_000), await call('first', 50_000)]
    expect(growing.grow(50_000)).toBe(false)
    const raised = growing.raiseTo(480_000, { waitMs: LONG_MS, isOver: () => false })
    await small.settle(settlementOf(0))
    await expect(waits(raised)).resolves.toBe('waits')
    await large.settle(settlementOf(0))
    await expect(raised).resolves.toBeUndefined()
    expect(growing.amount).toBe(480_000)
  })

  test('a line that waits for running calls gets quota for its batch when enough of them have ended', async () => {
    const { call, batch } = await stage()
    const whole = await batch(200_000)
    const [one, other] = [await call('first', 100_000), await call('first', 200_000)]
    const reserve = new LineReserve(whole, 0)
    expect(() => reserve.holdFor(250_000, factsOf('line'))).toThrow(QuotaHeldByOtherCalls)
    await one.settle(settlementOf(0))
    await other.settle(settlementOf(0))
    expect(whole.amount).toBe(450_000)
    expect(reserve.holdFor(250_000, factsOf('line')).amount).toBe(250_000)
    expect(whole.amount).toBe(450_000)
  })

  test('a hold that grows uses what it got while it waited to grow, together with free quota', async () => {
    const { call } = await stage()
    const growing = await call('first', 100)
    const other = await call('first', 499_900)
    expect(growing.grow(50)).toBe(false)
    await other.settle(settlementOf(499_750))
    // The 50 that it waited for, and 100 that are free.
    expect([growing.amount, growing.maxGrowth]).toEqual([150, 150])
    expect([growing.grow(151), growing.grow(150), growing.amount, growing.taken]).toEqual([
      false,
      true,
      250,
      250,
    ])
  })
})
