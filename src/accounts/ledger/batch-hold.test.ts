import { describe, expect, test } from 'vitest'
import { LEDGER_PLACES } from '../../../test/ledger/banks.ts'
import { accountOf, factsOf, settlementOf } from '../../../test/ledger/calls.ts'
import { storeWithAccount } from '../../../test/stores/rows.ts'
import { StoreUnavailable } from '../../store/store-unavailable.ts'
import type { Store } from '../../store/store.ts'
import { factsOfBatchHold, LineReserve } from './batch-hold.ts'
import { Ledger, settledCall } from './ledger.ts'
import { InsufficientQuota, QuotaHeldByOtherCalls } from './quota-refusal.ts'

const BATCH = 'batch_0'

/** A ledger with a parked batch hold of 300,000 on a key that has 500,000. */
async function batchOf() {
  const { store, tokenId } = await storeWithAccount()
  const ledger = new Ledger(store, 'run')
  const account = await accountOf(ledger, tokenId)
  const hold = ledger.admit(account, 300_000, factsOfBatchHold(BATCH, 1))
  expect(await hold.park()).toBe(true)
  const stored = async (): Promise<number | undefined> => (await store.write('parkedHolds'))[0]?.amount
  return { store, tokenId, ledger, account, hold, stored }
}

describe('docs/ledger.md: Batches', () => {
  test('the charge of a line shrinks the hold of its batch, here and in the store', async () => {
    const { store, tokenId, ledger, account, hold, stored } = await batchOf()
    const reserve = new LineReserve(hold, 100_000)
    const part = reserve.holdFor(80_000, factsOf('line'))
    await part.settle(settlementOf(7))
    expect(account.token.free).toBe(200_000)
    expect(await stored()).toBe(300_000)
    await reserve.settle(ledger, settledCall(part, settlementOf(7)))
    expect([hold.amount, account.token.held, account.token.committed]).toEqual([200_000, 200_000, 200_000])
    expect(account.token.free).toBe(299_993)
    expect(await stored()).toBe(200_000)
    expect((await store.write('loadAccount', { tokenId }))?.token.used_quota).toBe(7)
  })

  test('a charge that is repeated in the store changes nothing', async () => {
    const { store, tokenId, ledger, hold, stored } = await batchOf()
    const reserve = new LineReserve(hold, 100_000)
    const call = settledCall(reserve.holdFor(80_000, factsOf('line')), settlementOf(7))
    await reserve.settle(ledger, call)
    await store.write('settle', { ...call, part: { hold: BATCH, amount: 100_000 } })
    expect(await stored()).toBe(200_000)
    expect((await store.write('loadAccount', { tokenId }))?.token.used_quota).toBe(7)
  })

  test('a line that needs more than was reserved lets the hold of its batch grow, as far as quota is free', async () => {
    const { hold, stored } = await batchOf()
    const reserve = new LineReserve(hold, 100_000)
    expect(reserve.holdFor(250_000, factsOf('line')).amount).toBe(250_000)
    expect([hold.amount, reserve.amount]).toEqual([450_000, 250_000])
    await expect.poll(stored).toBe(450_000)
    expect(() => reserve.holdFor(300_001, factsOf('line'))).toThrow(InsufficientQuota)
    expect(hold.amount).toBe(450_000)
  })

  test('a call for a line grows within what is reserved for the line, also if no other quota is free', async () => {
    const { ledger, account, hold } = await batchOf()
    ledger.admit(account, 200_000, factsOf('call'))
    const reserve = new LineReserve(hold, 100_000)
    const part = reserve.holdFor(60_000, factsOf('line'))
    await expect(part.raiseTo(90_000, { waitMs: 0, isOver: () => false })).resolves.toBeUndefined()
    expect([part.grow(10_000), part.amount]).toEqual([true, 100_000])
    expect([part.grow(1), hold.amount, reserve.amount]).toEqual([false, 300_000, 100_000])
  })

  test('a line that is tried again and again reserves its largest call once', async () => {
    const { hold } = await batchOf()
    const reserve = new LineReserve(hold, 100_000)
    for (let attempt = 0; attempt < 5; attempt += 1) {
      const part = reserve.holdFor(100_000, factsOf('line'))
      await expect(part.raiseTo(150_000, { waitMs: 0, isOver: () => false })).resolves.toBeUndefined()
      await part.settle(settlementOf(0))
    }
    expect([hold.amount, reserve.amount]).toEqual([350_000, 150_000])
  })

  test('a line whose growth only running calls prevent is told to wait for them', async () => {
    const { ledger, account, hold } = await batchOf()
    ledger.admit(account, 150_000, factsOf('call'))
    // 200,000 are neither spent nor held by batches.
    expect(() => new LineReserve(hold, 0).holdFor(200_000, factsOf('line'))).toThrow(QuotaHeldByOtherCalls)
    expect(() => new LineReserve(hold, 0).holdFor(200_001, factsOf('line'))).toThrow(InsufficientQuota)
  })

  test('a line that was answered gets its hold whatever is affordable, and is charged', async () => {
    const { ledger, account, hold, stored } = await batchOf()
    ledger.admit(account, 200_000, factsOf('call'))
    const reserve = new LineReserve(hold, 100_000)
    const part = reserve.holdAnswered(factsOf('line'))
    expect(part.grow(400_000)).toBe(true)
    await part.settle(settlementOf(7))
    await reserve.settle(ledger, settledCall(part, settlementOf(7)))
    expect(account.token.remain).toBe(499_993)
    expect(await stored()).toBe(200_000)
  })

  test('what a batch holds counts as spent, so that a call is refused for good; what a call holds does not', async () => {
    const { ledger, account, hold } = await batchOf()
    expect(() => ledger.admit(account, 200_001, factsOf('h'))).toThrow(InsufficientQuota)
    ledger.admit(account, 150_000, factsOf('call'))
    expect(() => ledger.admit(account, 60_000, factsOf('h'))).toThrow(QuotaHeldByOtherCalls)
    await ledger.release(hold)
    expect(ledger.admit(account, 350_000, factsOf('h')).amount).toBe(350_000)
  })

  test('the hold of a batch is taken up after a restart and still counts as spent; its end leaves nothing', async () => {
    const { store, tokenId } = await batchOf()
    const next = new Ledger(store, 'next run')
    expect((await next.recover()).count).toBe(0)
    const [taken] = await next.resumeParkedHolds(() => expect.unreachable('its token is known'))
    const account = await accountOf(next, tokenId)
    expect([account.token.free, account.token.committed]).toEqual([200_000, 300_000])
    if (taken) await next.release(taken)
    expect([account.token.free, account.token.committed]).toEqual([500_000, 0])
    expect(await store.write('parkedHolds')).toEqual([])
  })

  test('a growth that waits when its batch ends takes nothing any more', async () => {
    const { ledger, account, hold } = await batchOf()
    ledger.releasePart(hold, 200_000)
    const call = ledger.admit(account, 300_000, factsOf('call'))
    expect(() => new LineReserve(hold, 0).holdFor(150_000, factsOf('line'))).toThrow(QuotaHeldByOtherCalls)
    await ledger.release(hold)
    await call.settle(settlementOf(1))
    expect([account.token.held, account.token.committed, account.token.free]).toEqual([0, 0, 499_999])
  })

  test('a hold that cannot be kept for after a restart is released like any other, and leaves those of other batches', async () => {
    const { store, tokenId } = await batchOf()
    const full: Store = Object.assign(Object.create(store), {
      write: (name: 'parkHold', ...input: never) =>
        name === 'parkHold' ? Promise.reject(new StoreUnavailable('full')) : store.write(name, ...input),
    })
    const ledger = new Ledger(full, 'next run')
    const [taken] = await ledger.resumeParkedHolds(() => expect.unreachable('its token is known'))
    const payer = await accountOf(ledger, tokenId)
    const hold = ledger.admit(payer, 50_000, factsOfBatchHold('batch_1', 1))
    expect(await hold.park()).toBe(false)
    await ledger.release(hold)
    expect([ledger.openHolds.size, [...ledger.parkedHolds]]).toEqual([0, [taken]])
    expect([payer.token.held, payer.token.committed]).toEqual([300_000, 300_000])
  })

  test('a line whose batch holds nothing any more is charged once', async () => {
    const { store, tokenId, ledger, account, hold } = await batchOf()
    const call = settledCall(new LineReserve(hold, 100_000).holdFor(80_000, factsOf('line')), settlementOf(7))
    await ledger.release(hold)
    await ledger.chargeWithoutHold(call)
    expect([account.token.held, account.token.remain]).toEqual([0, 499_993])
    expect((await store.write('loadAccount', { tokenId }))?.token.used_quota).toBe(7)
  })
})

test.each(LEDGER_PLACES)(
  '$name: lines of a batch that holds nothing leave no negative hold, which would be quota to spend after a restart',
  async ({ open }) => {
    const { nodes, crash, tokenId, sql, hasHolds } = await open(1)
    const [{ ledger } = expect.unreachable()] = nodes
    const account = await accountOf(ledger, tokenId)
    const hold = ledger.admit(account, 0, factsOfBatchHold(BATCH, 1))
    expect(await hold.park()).toBe(true)
    const [charged, free] = [new LineReserve(hold, 100_000), new LineReserve(hold, 50_000)]
    await charged.settle(ledger, settledCall(charged.holdAnswered(factsOf('line')), settlementOf(7)))
    await free.settle(ledger, undefined)
    if (hasHolds) expect(await sql('select amount from holds')).toEqual([{ amount: 0 }])
    await crash()
    const [{ ledger: next } = expect.unreachable()] = nodes
    const [taken] = await next.resumeParkedHolds(() => expect.unreachable('its token is known'))
    const { token } = await accountOf(next, tokenId)
    expect([taken?.amount, token.held, token.committed, token.accountFree]).toEqual([0, 0, 0, 499_993])
    if (taken) await next.release(taken)
  },
)
