import { expect, test } from 'vitest'
import { ServerClock } from './server-clock.ts'

const HOUR = 3_600_000

test.each([
  ['goes on as ours does', [0, 250, 500], 0],
  ['is read late', [0, 1_200, 500], 0],
  ['is put forward', [0, HOUR + 250, HOUR + 500], 1],
  ['is put back: then all is counted longer, and nothing is forgotten', [0, -HOUR, -HOUR + 250], 0],
  ['is put forward again and again', [0, HOUR, 2 * HOUR], 2],
])('the gateway follows a clock that %s', (_, readings, steps) => {
  const clock = new ServerClock()
  for (const [i, reading] of readings.entries()) clock.observe(1.8e12 + reading, 5_000 + 250 * i)
  expect(clock.steps).toBe(steps)
})
