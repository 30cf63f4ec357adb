import fc from 'fast-check'
import { expect, test } from 'vitest'
import { splitIntoWholeDays } from './sum-usage.ts'

const DAY = 86_400_000
const NOW = 100 * DAY + 5

test.each([
  ['all of time', {}, { days: {}, edges: [] }],
  ['from a midnight on', { fromMs: 3 * DAY }, { days: { first: 3 }, edges: [] }],
  [
    'from a noon on',
    { fromMs: 3.5 * DAY },
    { days: { first: 4 }, edges: [{ fromMs: 3.5 * DAY, beforeMs: 4 * DAY }] },
  ],
  ['until a midnight', { beforeMs: 3 * DAY }, { days: { last: 2 }, edges: [] }],
  [
    'from noon to noon',
    { fromMs: 3.5 * DAY, beforeMs: 6.5 * DAY },
    {
      days: { first: 4, last: 5 },
      edges: [
        { fromMs: 3.5 * DAY, beforeMs: 4 * DAY },
        { fromMs: 6 * DAY, beforeMs: 6.5 * DAY },
      ],
    },
  ],
  [
    'within a day',
    { fromMs: 3.25 * DAY, beforeMs: 3.5 * DAY },
    { edges: [{ fromMs: 3.25 * DAY, beforeMs: 3.5 * DAY }] },
  ],
  [
    'over one midnight',
    { fromMs: 3.5 * DAY, beforeMs: 4.5 * DAY },
    {
      edges: [
        { fromMs: 3.5 * DAY, beforeMs: 4 * DAY },
        { fromMs: 4 * DAY, beforeMs: 4.5 * DAY },
      ],
    },
  ],
  ['until later than now', { fromMs: 100 * DAY, beforeMs: 101 * DAY }, { days: { first: 100 }, edges: [] }],
  ['backwards', { fromMs: 5 * DAY, beforeMs: 3 * DAY }, { edges: [] }],
])('a period is divided into whole days and edges: %s', (_, time, expected) => {
  expect(splitIntoWholeDays(time, NOW)).toEqual({ days: undefined, ...expected })
})

test('each moment of a requested period is summed exactly once, in a whole day or in a part of a day at its ends', () => {
  const moment = fc.integer({ min: 0, max: 20 * 24 })
  fc.assert(
    fc.property(moment, moment, moment, (from, before, at) => {
      const hour = DAY / 24
      const { days, edges } = splitIntoWholeDays({ fromMs: from * hour, beforeMs: before * hour }, NOW)
      const atMs = at * hour
      const day = Math.floor(atMs / DAY)
      const inDays = days !== undefined && day >= (days.first ?? 0) && day <= (days.last ?? Infinity)
      const inEdges = edges.filter(({ fromMs, beforeMs }) => atMs >= fromMs && atMs < beforeMs).length
      expect(Number(inDays) + inEdges).toBe(at >= from && at < before ? 1 : 0)
    }),
  )
})
