import { expect, test } from 'vitest'
import { BeginCredit } from './begin-credit.ts'

/** So many begin before the credit is used up. */
function spendAll(credit: BeginCredit): number {
  let spent = 0
  for (; credit.isLeft; spent++) credit.spend()
  return spent
}

test('one begins for each that ended, and one for each idle millisecond', () => {
  const credit = new BeginCredit()
  expect(spendAll(credit)).toBe(64)
  credit.gain(3, 0)
  expect(spendAll(credit)).toBe(3)
  credit.gain(0, 5)
  expect(spendAll(credit)).toBe(5)
  credit.gain(0, 0.5)
  expect(spendAll(credit)).toBe(0)
  credit.gain(0, 0.5)
  expect(spendAll(credit)).toBe(1)
})

test('no more than 64 are saved up', () => {
  const credit = new BeginCredit()
  credit.gain(1_000, 10_000)
  expect(spendAll(credit)).toBe(64)
})

test('those that begin beyond it are made good for first', () => {
  const credit = new BeginCredit()
  for (let i = 0; i < 74; i++) credit.spend()
  credit.gain(10, 0)
  expect(credit.isLeft).toBe(false)
  credit.gain(1, 0)
  expect(spendAll(credit)).toBe(1)
})

test('nobody waits: all of it is there again', () => {
  const credit = new BeginCredit()
  spendAll(credit)
  credit.reset()
  expect(spendAll(credit)).toBe(64)
})
