import { expect, test } from 'vitest'
import { BeginCredit, type Turn } from './begin-credit.ts'

const QUIET: Turn = { isLate: false, idleMs: 0, ended: 0, open: 0 }

/** So many begin before the credit is used up. */
function spendAll(credit: BeginCredit): number {
  let spent = 0
  for (; credit.isLeft; spent++) credit.spend()
  return spent
}

test('one begins for each that ended, and one for each idle millisecond', () => {
  const credit = new BeginCredit()
  expect(spendAll(credit)).toBe(64)
  credit.turned({ ...QUIET, ended: 3, open: 61 })
  expect(spendAll(credit)).toBe(3)
  credit.turned({ ...QUIET, idleMs: 5, open: 64 })
  expect(spendAll(credit)).toBe(5)
  credit.turned({ ...QUIET, open: 69 })
  expect(spendAll(credit)).toBe(0)
})

test('no more than 64 are saved up', () => {
  const credit = new BeginCredit()
  credit.turned({ ...QUIET, idleMs: 10_000 })
  expect(spendAll(credit)).toBe(64)
})

test('after a late turn half of those under way end before others begin, however many turns are late meanwhile', () => {
  const credit = new BeginCredit()
  credit.turned({ ...QUIET, isLate: true, open: 100 })
  for (let i = 0; i < 49; i++) {
    credit.turned({ ...QUIET, isLate: true, ended: 1, open: 99 - i })
    expect(credit.isLeft).toBe(false)
  }
  credit.turned({ ...QUIET, ended: 2, open: 49 })
  expect(spendAll(credit)).toBe(1)
})

test('the next late turn counts once as many ended as were under way at the last', () => {
  const credit = new BeginCredit()
  credit.turned({ ...QUIET, isLate: true, open: 100 })
  credit.turned({ ...QUIET, isLate: true, ended: 99, open: 51 })
  expect(spendAll(credit)).toBe(49)
  credit.turned({ ...QUIET, isLate: true, ended: 1, open: 99 })
  credit.turned({ ...QUIET, ended: 50, open: 49 })
  expect(credit.isLeft).toBe(false)
  credit.turned({ ...QUIET, ended: 1, open: 48 })
  expect(spendAll(credit)).toBe(1)
})

test('idle time makes good for calls that do not end', () => {
  const credit = new BeginCredit()
  credit.turned({ ...QUIET, isLate: true, open: 1_000 })
  credit.turned({ ...QUIET, idleMs: 501, open: 1_000 })
  expect(spendAll(credit)).toBe(1)
})

test('nobody waits: what was before counts no more', () => {
  const credit = new BeginCredit()
  credit.turned({ ...QUIET, isLate: true, open: 1_000 })
  credit.reset()
  expect(spendAll(credit)).toBe(64)
})
