import { expect, test } from 'vitest'
import { trafficSharesOf } from './traffic-shares.ts'

const CHANNEL = { status: 1, priority: 0, weight: 1, models: 'm' }

test('channels of one model and priority share its calls by weight, and disabled channels have no share', () => {
  const shares = trafficSharesOf([
    { ...CHANNEL, id: 1, weight: 3 },
    { ...CHANNEL, id: 2, weight: 0 },
    { ...CHANNEL, id: 3, status: 2 },
    { ...CHANNEL, id: 4, priority: 5 },
    { ...CHANNEL, id: 5, models: 'n' },
  ])
  expect([...shares]).toEqual([
    [1, 0.75],
    [2, 0.25],
    [4, 1],
    [5, 1],
  ])
})

test('the traffic share of a channel with several models is the mean of its shares of each model', () => {
  const shares = trafficSharesOf([
    { ...CHANNEL, id: 1, models: 'm,n' },
    { ...CHANNEL, id: 2 },
  ])
  expect(shares.get(1)).toBe(0.75)
})
