import { expect, test } from 'vitest'
import { CallSlots } from './call-slots.ts'

test.each([
  [8_000, 64],
  [16, 8],
])('of %i concurrent calls, live streams may have %i of the slots for accounts', (maxCalls, streams) => {
  expect(new CallSlots(() => maxCalls, performance.now.bind(performance)).streams).toBe(streams)
})
