import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { accountOf, factsOf, settlementOf } from '../../../test/ledger/calls.ts'
import { newToken, storeWithAccount, temporaryFolder } from '../../../test/stores/rows.ts'
import type { Store } from '../../store/store.ts'
import { StoreUnavailable } from '../../store/store-unavailable.ts'
import { Ledger } from './ledger.ts'

const PATIENT = { waitMs: 60_000, onLeft: () => () => {} }

describe('the ledger', () => {
  test("the ledger admits exactly as many calls in one turn of the event loop as the key's quota affords", async () => {
    const { store, tokenId } = await storeWithAccount()
    const ledger = new Ledger(store, 'run')
    const account = await accountOf(ledger, tokenId)
    const admitted = Array.from({ length: 50 }, (_, i) => {
      try {
        return ledger.admit(account, 50_000, factsOf(`h${i}`))
      } catch {
        return undefined
      }
    })
    expect(admitted.filter((hold) => hold)).toHaveLength(10)
  })

  test('the ledger refuses a call that the quota does not afford, and states what remains and what is needed', async () => {
    const { store, userId } = await storeWithAccount()
    const rich = await store.write(
      'createToken',
      newToken(userId, { name: 'rich', key: 'k2', remain_quota: 9_000_000 }),
    )
    const ledger = new Ledger(store, 'run')
    const account = await accountOf(ledger, rich.id)
    expect(() => ledger.admit(account, 1_000_001, factsOf('h1'))).toThrow(
      /1000000 remain, 1000001 are needed/,
    )
    expect(ledger.admit(account, 1_000_000, factsOf('h2')).amount).toBe(1_000_000)
  })

  test('a key with unlimited quota is limited by its user only, and its spending is still counted', async () => {
    const { store, userId } = await storeWithAccount()
    const token = await store.write(
      'createToken',
      newToken(userId, { name: 'free', key: 'k2', remain_quota: 0, unlimited_quota: true }),
    )
    const ledger = new Ledger(store, 'run')
    const hold = ledger.admit(await accountOf(ledger, token.id), 900_000, factsOf('h1'))
    await hold.settle(settlementOf(700))
    const row = await store.write('loadAccount', { tokenId: token.id })
    expect(row?.token).toMatchObject({ remain_quota: -700, used_quota: 700 })
    expect(row?.user).toMatchObject({ quota: 999_300, used_quota: 700, request_count: 1 })
  })

  test('the holds of an unlimited user never sum up to more than can be counted, and are refused beyond it', async () => {
    const { store, userId } = await storeWithAccount()
    await store.write('changeUser', { userId, fields: { unlimited_quota: true } })
    const token = await store.write(
      'createToken',
      newToken(userId, { name: 'free', key: 'k2', remain_quota: 0, unlimited_quota: true }),
    )
    const ledger = new Ledger(store, 'run')
    const account = await accountOf(ledger, token.id)
    const first = ledger.admit(account, Number.MAX_SAFE_INTEGER - 10, factsOf('h1'))
    await first.whenDurable()
    for (const admit of [
      () => ledger.admitInTime({ account, budgets: [] }, 11, factsOf('h2'), PATIENT),
      async () => ledger.admit(account, 11, factsOf('h2')),
    ])
      await expect(admit()).rejects.toMatchObject({
        code: 'insufficient_quota',
        message: expect.stringContaining('10 remain, 11 are needed'),
      })
    expect(first.grow(11)).toBe(false)
    expect(first.refusal).toMatchObject({ code: 'insufficient_quota' })
    await ledger.admit(account, 10, factsOf('h2')).whenDurable()
    expect((await store.write('loadAccount', { tokenId: token.id }))?.openHolds.user).toBe(
      Number.MAX_SAFE_INTEGER,
    )
    await first.settle(settlementOf(7))
    expect(ledger.admit(account, 11, factsOf('h3')).amount).toBe(11)
  })

  test('a hold is settled only once, and a second settlement throws', async () => {
    const { store, tokenId } = await storeWithAccount()
    const ledger = new Ledger(store, 'run')
    const hold = ledger.admit(await accountOf(ledger, tokenId), 100, factsOf('h1'))
    await hold.settle(settlementOf(7))
    expect(() => hold.settle(settlementOf(7))).toThrow(/twice/)
    expect(ledger.openHolds.size).toBe(0)
  })

  test('the hold of a background call continues after a restart, and is then settled once', async () => {
    const { store, tokenId } = await storeWithAccount()
    const first = new Ledger(store, 'run')
    const hold = first.admit(await accountOf(first, tokenId), 300_000, factsOf('h1'))
    expect(await hold.park()).toBe(true)
    expect(first.unresolved).toBe(0)
    const second = new Ledger(store, 'next run')
    expect((await second.recover()).count).toBe(0)
    const [taken] = await second.resumeParkedHolds(() => expect.unreachable('its token is known'))
    const account = await accountOf(second, tokenId)
    expect(taken).toMatchObject({ amount: 300_000, isParked: true, isSettled: false })
    expect(account.token.free).toBe(200_000)
    await taken?.settle(settlementOf(7))
    expect(account.token.free).toBe(499_993)
    await hold.settle(settlementOf(9))
    const row = await store.write('loadAccount', { tokenId })
    expect(row?.token).toMatchObject({ remain_quota: 499_993, used_quota: 7 })
    expect(await store.write('parkedHolds')).toEqual([])
  })

  test("a background call's hold is resumed after a restart, even if the free quota is too small, or reported if its key is gone", async () => {
    const { store, tokenId } = await storeWithAccount()
    const first = new Ledger(store, 'run')
    await first.admit(await accountOf(first, tokenId), 300_000, factsOf('h1')).park()
    const second = new Ledger(store, 'next run')
    const account = await accountOf(second, tokenId)
    second.admit(account, 400_000, factsOf('h2'))
    expect(await second.resumeParkedHolds(() => expect.unreachable('its token is known'))).toHaveLength(1)
    expect(account.token.free).toBe(-200_000)
    const without: Store = Object.assign(Object.create(store), {
      write: (name: 'loadAccount', ...input: never) =>
        name === 'loadAccount' ? Promise.resolve(undefined) : store.write(name, ...input),
    })
    const unowned: string[] = []
    expect(await new Ledger(without, 'third run').resumeParkedHolds((id) => unowned.push(id))).toEqual([])
    expect(unowned).toEqual(['h1'])
  })

  test("a background call's hold that cannot be saved for after a restart stays open, and is settled when the call ends", async () => {
    const { store, tokenId } = await storeWithAccount()
    const full: Store = Object.assign(Object.create(store), {
      write: (name: 'parkHold', ...input: never) =>
        name === 'parkHold' ? Promise.reject(new StoreUnavailable('full')) : store.write(name, ...input),
    })
    const ledger = new Ledger(full, 'run')
    const hold = ledger.admit(await accountOf(ledger, tokenId), 100, factsOf('h1'))
    const parking = hold.park()
    expect(await Promise.all([parking, hold.park()])).toEqual([false, false])
    expect(hold.isParked).toBe(false)
    expect([ledger.openHolds.size, ledger.parkedHolds.size]).toEqual([1, 0])
    await hold.settle(settlementOf(7))
    expect([ledger.openHolds.size, ledger.parkedHolds.size]).toEqual([0, 0])
  })

  test('a hold grows only within free quota, and its end releases all of it', async () => {
    const { store, tokenId } = await storeWithAccount()
    const ledger = new Ledger(store, 'run')
    const account = await accountOf(ledger, tokenId)
    const hold = ledger.admit(account, 400_000, factsOf('h1'))
    expect(hold.grow(100_001)).toBe(false)
    expect(hold.grow(100_000)).toBe(true)
    expect(account.token.free).toBe(0)
    await hold.settle(settlementOf(1))
    expect(account.token.free).toBe(499_999)
  })

  test('a response that costs more than its hold is charged in full, even below zero', async () => {
    const { store, tokenId } = await storeWithAccount()
    const ledger = new Ledger(store, 'run')
    const account = await accountOf(ledger, tokenId)
    await ledger.admit(account, 500_000, factsOf('h1')).settle(settlementOf(600_000))
    expect(account.token.free).toBe(-100_000)
    expect((await store.write('loadAccount', { tokenId }))?.token.remain_quota).toBe(-100_000)
  })

  test('waiting until a hold is durable ends only after it was written', async () => {
    const path = join(temporaryFolder(), 'sluice.db')
    const { store, tokenId } = await storeWithAccount(path)
    const hold = new Ledger(store, 'run')
    const open = hold.admit(await accountOf(hold, tokenId), 100, factsOf('h1'))
    expect(open.isDurable).toBe(false)
    await open.whenDurable()
    expect(open.isDurable).toBe(true)
    expect((await store.read('findUnbalancedAccounts')).openHolds).toEqual({ count: 1, amount: 100 })
  })
})
