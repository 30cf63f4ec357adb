import { expect, test } from 'vitest'
import { sharesOf } from './shares.ts'

const CHANNEL = { status: 1, priority: 0, weight: 1 }

test('channels of one priority share by weight; disabled ones have no share', () => {
  const shares = sharesOf([
    { ...CHANNEL, id: 1, weight: 3 },
    { ...CHANNEL, id: 2, weight: 0 },
    { ...CHANNEL, id: 3, status: 2 },
    { ...CHANNEL, id: 4, priority: 5 },
  ])
  expect([...shares]).toEqual([
    [1, 0.75],
    [2, 0.25],
    [4, 1],
  ])
})
