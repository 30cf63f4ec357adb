import fc from 'fast-check'
import { expect, test } from 'vitest'
import { RetryBudget } from './retry-budget.ts'

test('the retry budget lets a new gateway retry fifty times', () => {
  const budget = new RetryBudget(0)
  expect(Array.from({ length: 60 }, () => budget.take()).filter(Boolean)).toHaveLength(50)
})

test('the retry budget lets a busy gateway retry one call in ten, however many calls fail', () => {
  const budget = new RetryBudget(0)
  let retries = 0
  for (let call = 0; call < 10_000; call++) {
    budget.callBegan(0)
    if (budget.take()) retries += 1
  }
  expect(retries).toBeGreaterThanOrEqual(1000)
  expect(retries).toBeLessThanOrEqual(1050)
})

test('the retry budget gives an idle gateway five retries a second, up to fifty', () => {
  const budget = new RetryBudget(0)
  while (budget.take()) {}
  budget.callBegan(2_000)
  expect(Array.from({ length: 20 }, () => budget.take()).filter(Boolean)).toHaveLength(10)
  budget.callBegan(3_600_000)
  expect(Array.from({ length: 60 }, () => budget.take()).filter(Boolean)).toHaveLength(50)
})

test('the retries never exceed the retry budget of fifty, one for every ten calls, and five a second', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(500), fc.nat(3)), { maxLength: 200 }), (steps) => {
      const budget = new RetryBudget(0)
      let nowMs = 0
      let retries = 0
      for (const [waitMs, wanted] of steps) {
        nowMs += waitMs
        budget.callBegan(nowMs)
        for (let i = 0; i < wanted; i++) if (budget.take()) retries += 1
      }
      expect(retries).toBeLessThanOrEqual(50 + steps.length * 0.1 + (nowMs / 1000) * 5 + 1e-6)
    }),
  )
})
