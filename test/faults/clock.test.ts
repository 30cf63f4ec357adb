import { expect, test } from 'vitest'
import { dateClock } from '../fixtures/moved-clock.ts'
import { HOUR, jump } from './clock-jumps.ts'

test('a clock set an hour forward or back during calls affects the expiry of keys, but no timeout, rate limit or charge', {
  timeout: 300_000,
}, async () => {
  const offsets = [HOUR, -HOUR]
  expect(await jump(dateClock(), offsets)).toHaveLength(offsets.length)
})
