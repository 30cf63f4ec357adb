import { expect, test } from 'vitest'
import { budgetOfStoredHold } from '../../domain/budget.ts'
import { addHold, releaseHold } from './charged-balances.ts'
import { LeaseTable } from './lease-table.ts'

const state = { account: 'u:3', epoch: 0, amount: 100, remain: 1_000, used: 0, free: 0 } as const
/** Longer than idle leases are kept. */
const LATER_MS = 6_000

function lent(): LeaseTable {
  const leases = new LeaseTable(() => false)
  leases.getOrCreate('u:3').applyState(state)
  return leases
}

test('idle quota that the bank could not take back, because the row was locked, can be spent on, and is returned later', () => {
  const leases = lent()
  const released = leases.releaseSpare(performance.now() + LATER_MS)
  expect(released).toEqual([{ account: 'u:3', keep: 0, spare: 100 }])
  leases.applyReleased(released, [])
  expect(leases.get('u:3')?.free).toBe(100)
  expect(leases.evictIdle(performance.now() + LATER_MS)).toEqual([])
  expect(leases.releaseSpare(performance.now())).toEqual([])
  expect(leases.releaseSpare(performance.now() + LATER_MS)).toEqual(released)
})

test('idle quota that the bank took back cannot be spent', () => {
  const leases = lent()
  const released = leases.releaseSpare(performance.now() + LATER_MS)
  leases.applyReleased(released, [{ ...state, amount: 0, free: 100 }])
  expect(leases.get('u:3')?.free).toBe(0)
})

test('quota that could not be returned stays charged with the calls that were settled in the meantime', () => {
  const leases = lent()
  const released = leases.releaseSpare(performance.now() + LATER_MS)
  leases.get('u:3')?.charge(30)
  leases.applyReleased(released, [])
  expect(leases.get('u:3')?.free).toBe(70)
})

test('the balances of an open hold of 0 stay, so that what is charged to it later is counted on them', () => {
  const leases = new LeaseTable(() => false)
  const account = { token: leases.getOrCreate('t:1'), user: leases.getOrCreate('u:3') }
  const budget = {
    periodBudget: budgetOfStoredHold('b:day:2026-01-01:u:3'),
    balance: leases.getOrCreate('b:day:2026-01-01:u:3'),
  }
  const payer = { account, budgets: [budget] }
  addHold(payer, 0)
  expect(leases.evictIdle(performance.now() + LATER_MS)).toEqual([])
  releaseHold(payer, 0)
  expect(leases.evictIdle(performance.now() + LATER_MS)).toHaveLength(3)
})
