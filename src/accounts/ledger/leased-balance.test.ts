import { describe, expect, test } from 'vitest'
import { LeasedBalance } from './leased-balance.ts'

const state = (amount: number, epoch = 0) =>
  ({ account: 'u:3', epoch, amount, remain: 1_000, used: 0, free: 0 }) as const

function lent(amount: number): LeasedBalance {
  const balance = new LeasedBalance('u:3', 10, () => false)
  balance.applyState(state(amount))
  return balance
}

describe('what a node has borrowed', () => {
  test('borrowed quota can be spent to the last unit, and a database state from before a charge does not undo this charge', () => {
    const balance = lent(100)
    balance.hold(60)
    balance.hold(-60)
    balance.charge(40)
    expect(balance.free).toBe(60)
    // A state from before the bank knew of the charge.
    balance.applyState(state(100))
    expect([balance.free, balance.accountRemain]).toEqual([60, 960])
    balance.applyReported(40)
    balance.applyState({ ...state(60), remain: 960 })
    expect([balance.free, balance.accountRemain]).toEqual([60, 960])
  })

  test('what was borrowed of a budget pays for no call that knows a lower amount than the database', () => {
    const balance = lent(100)
    balance.applyState({ ...state(60), remain: 960, used: 40 })
    expect([0, 1_000, 1_200, 999].map((amount) => balance.freeAtAmount(amount))).toEqual([60, 60, 60, 0])
    // The database knows the lower amount.
    balance.applyState({ ...state(20, 1), remain: 460, used: 40 })
    expect([500, 499].map((amount) => balance.freeAtAmount(amount))).toEqual([20, 0])
  })

  test('borrowed quota cannot be spent while the database may have excluded the node', () => {
    let isCutOff = false
    const balance = new LeasedBalance('u:3', 10, () => isCutOff)
    balance.applyState(state(100))
    isCutOff = true
    expect(balance.free).toBe(0)
    isCutOff = false
    expect(balance.free).toBe(100)
  })

  test('if a lowered quota leaves nodes with more borrowed than the account has, quota spent from a loan is not spent a second time', () => {
    const balance = lent(100)
    balance.hold(100)
    balance.applyState({ ...state(100, 1), remain: 70, free: -30 })
    balance.hold(-100)
    balance.charge(40)
    expect(balance.free).toBe(30)
    balance.applyReported(40)
    balance.applyState({ ...state(60, 1), remain: 30, free: -30 })
    expect(balance.free).toBe(30)
    balance.hold(30)
    expect(balance.free).toBe(0)
  })

  test("a newer state of the database replaces a node's borrowed quota, and an older state that arrives later is ignored", () => {
    const balance = lent(100)
    balance.applyState(state(0, 4))
    balance.applyState(state(100, 3))
    expect(balance.free).toBe(0)
    balance.applyState(state(30, 4))
    expect(balance.free).toBe(30)
  })

  test('after a restore of the database, one older state is accepted in place of the borrowed quota, and further older ones are not', () => {
    const balance = lent(100)
    balance.applyState(state(100, 4))
    balance.expectRestored()
    expect(balance.applyState(state(30, 3))).toBe(true)
    expect(balance.free).toBe(30)
    balance.applyState(state(80, 2))
    expect(balance.free).toBe(30)
  })

  test('borrowed quota is reported as lost, once, if the restored database has lent the node less than its open holds need', () => {
    const balance = lent(100)
    balance.hold(50)
    balance.expectRestored()
    expect(balance.applyState(state(40))).toBe(true)
    expect(balance.applyState(state(40))).toBe(false)
  })

  test('a node that has borrowed less than its holds borrows again, once and while the database has more', () => {
    const more = (free: number) => ({ ...state(40), free })
    const balance = lent(40)
    balance.hold(70)
    expect([0, 0, 25, 25, -5, 10].map((free) => balance.applyState(more(free)))).toEqual([
      true,
      false,
      true,
      true,
      false,
      true,
    ])
    balance.isUnlimited = true
    expect(balance.applyState(more(100))).toBe(false)
    balance.isUnlimited = false
    expect(balance.applyState({ ...state(70), free: 200 })).toBe(false)
  })

  test('a lease that has ended pays for nothing, and what is held is reported and borrowed again', () => {
    const balance = lent(100)
    expect(balance.endLease()).toBe(false)
    balance.applyState(state(100))
    balance.hold(30)
    balance.takeReport(5)
    expect(balance.endLease()).toBe(true)
    expect(balance.free).toBe(-30)
    expect(balance.takeReport(5)).toBeDefined()
    expect(balance.endLease()).toBe(false)
  })

  test('borrowed quota is released at once, except for holds and unreported charges', () => {
    const balance = lent(100)
    balance.hold(30)
    balance.charge(20)
    expect(balance.hasSpare).toBe(true)
    expect(balance.releaseSpare()).toEqual({ keep: 50, spare: 50 })
    expect([balance.free, balance.hasSpare]).toEqual([0, false])
  })

  test('a change of the held amount of borrowed quota is reported, and again if the database may not have received it', () => {
    const balance = lent(100)
    balance.hold(30)
    expect(balance.takeReport(5)).toEqual({ account: 'u:3', held: 30, estimate: 5 })
    expect(balance.takeReport(5)).toBeUndefined()
    balance.markUnsynced()
    expect(balance.takeReport(5)).toBeDefined()
    balance.applyState(state(100, 1))
    expect(balance.takeReport(5)).toBeDefined()
  })
})
