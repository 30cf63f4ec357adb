import { describe, expect, test } from 'vitest'
import { LeasedBalance } from './leased-balance.ts'

const state = (amount: number, epoch = 0) =>
  ({ account: 'u:3', epoch, amount, remain: 1_000, free: 0 }) as const

function lent(amount: number): LeasedBalance {
  const balance = new LeasedBalance('u:3', 10, () => false)
  balance.applyState(state(amount))
  return balance
}

describe('what a node has borrowed', () => {
  test('can be spent up to the unit, and what was charged does not come back with the bank’s next word', () => {
    const balance = lent(100)
    balance.hold(60)
    balance.hold(-60)
    balance.charge(40)
    expect(balance.free).toBe(60)
    // State from before the bank knew of the charge.
    balance.applyState(state(100))
    expect([balance.free, balance.accountRemain]).toEqual([60, 960])
    balance.applyReported(40)
    balance.applyState({ ...state(60), remain: 960 })
    expect([balance.free, balance.accountRemain]).toEqual([60, 960])
  })

  test('can no longer be spent once the bank may have given the node up', () => {
    let isCutOff = false
    const balance = new LeasedBalance('u:3', 10, () => isCutOff)
    balance.applyState(state(100))
    isCutOff = true
    expect(balance.free).toBe(0)
    isCutOff = false
    expect(balance.free).toBe(100)
  })

  test('is gone when it is called in, whatever the bank said of it before', () => {
    const balance = lent(100)
    expect(balance.advanceEpoch(4)).toBe(true)
    balance.applyState(state(100, 3))
    expect(balance.free).toBe(0)
    balance.applyState(state(30, 4))
    expect(balance.free).toBe(30)
    expect(balance.advanceEpoch(4)).toBe(false)
  })

  test('goes back but for what is held and what is still to be reported, from this very moment', () => {
    const balance = lent(100)
    balance.hold(30)
    balance.charge(20)
    expect(balance.hasSpare).toBe(true)
    expect(balance.releaseSpare()).toBe(50)
    expect([balance.free, balance.hasSpare]).toEqual([0, false])
  })

  test('is reported where what is held has changed, and again where the bank may not know', () => {
    const balance = lent(100)
    balance.hold(30)
    expect(balance.takeReport(5)).toEqual({ account: 'u:3', held: 30, estimate: 5 })
    expect(balance.takeReport(5)).toBeUndefined()
    balance.markUnsynced()
    expect(balance.takeReport(5)).toBeDefined()
    balance.advanceEpoch(1)
    expect(balance.takeReport(5)).toBeDefined()
  })
})
