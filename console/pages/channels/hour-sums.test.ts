import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ChannelMinuteSums } from '../../api/channel-health.ts'
import { sumOfLastHour, sparkline } from './hour-sums.ts'

const EMPTY: ChannelMinuteSums = { requests: 0, failed: 0, p50_ms: null, p95_ms: null }

const minute: fc.Arbitrary<ChannelMinuteSums> = fc
  .record({
    requests: fc.nat(50),
    part: fc.double({ min: 0, max: 1, noNaN: true }),
    p50_ms: fc.option(fc.nat(90_000)),
  })
  .map(({ requests, part, p50_ms }) => ({
    requests,
    failed: Math.floor(requests * part),
    p50_ms,
    p95_ms: p50_ms,
  }))

test('the latency line of a channel is interrupted by a minute without responses, and a single minute is still visible', () => {
  const at = (p50_ms: number | null): ChannelMinuteSums => ({ ...EMPTY, requests: 1, p50_ms })
  const { lines } = sparkline([at(10), at(20), at(null), at(30), EMPTY])
  expect(lines.map((points) => points.split(' ').length)).toEqual([2, 2])
  expect(sumOfLastHour([at(10), at(null)])).toEqual({ requests: 2, failed: 0, latestMs: 10 })
})

test('the latency line of a channel stays within its frame, and each minute with failures is marked', () => {
  fc.assert(
    fc.property(fc.array(minute, { minLength: 60, maxLength: 60 }), (minutes) => {
      const { width, height, lines, failures } = sparkline(minutes)
      for (const point of lines.flatMap((points) => points.split(' '))) {
        const [x = -9, y = -9] = point.split(',').map(Number)
        expect(x >= -2 && x <= width && y >= 0 && y <= height).toBe(true)
      }
      expect(failures.every(({ size }) => size > 0 && size <= height)).toBe(true)
      expect(failures).toHaveLength(minutes.filter(({ failed }) => failed > 0).length)
    }),
  )
})
