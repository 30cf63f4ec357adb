import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { channelOf } from '../../test/samples/channel.ts'
import { ChannelMinutes } from './channel-minutes.ts'

const CHANNEL = channelOf({ name: 'a' })
const MINUTE_MS = 60_000

describe('the minutes of a channel', () => {
  test('the statistics of a channel cover the last sixty minutes, the oldest first', () => {
    let nowMs = 1_000 * MINUTE_MS
    const minutes = new ChannelMinutes(() => nowMs)
    minutes.note(CHANNEL, 100, undefined, 'k1')
    nowMs += MINUTE_MS
    minutes.note(CHANNEL, 0, 'status 500', 'k1')
    minutes.note(CHANNEL, 5, undefined, 'k1')
    const last = minutes.of('a').slice(-3)
    expect(minutes.of('a')).toHaveLength(60)
    expect(last.map(({ requests, failed }) => [requests, failed])).toEqual([
      [0, 0],
      [1, 0],
      [2, 1],
    ])
    expect(minutes.lastError('a')).toEqual({ atMs: nowMs, cause: 'status 500' })
    expect(minutes.of('another').every(({ requests }) => requests === 0)).toBe(true)
  })

  test('attempts of a former process count in their minutes, and fail no channel that has answered', () => {
    const nowMs = 1_000 * MINUTE_MS
    const minutes = new ChannelMinutes(() => nowMs)
    minutes.restore('a', nowMs - MINUTE_MS, 100, null)
    minutes.restore('a', nowMs - 2 * MINUTE_MS, 9, 'status 500')
    minutes.restore('a', nowMs - 3 * MINUTE_MS, 9, 'status 503')
    minutes.restore('a', nowMs - 60 * MINUTE_MS, 100, null)
    minutes.note(CHANNEL, 100, undefined, 'k1')
    expect(minutes.hour('a')).toMatchObject({ requests: 4, failed: 2 })
    expect(
      minutes
        .of('a')
        .map(({ failed }) => failed)
        .slice(-4),
    ).toEqual([1, 1, 0, 0])
    expect(minutes.lastError('a')).toEqual({ atMs: nowMs - 2 * MINUTE_MS, cause: 'status 500' })
    expect(minutes.recordOf('a').record).toBe('answered')
    minutes.restore('b', nowMs, 9, 'status 500')
    expect(minutes.recordOf('b').record).toBe('failed')
    minutes.restore('b', nowMs - 600 * MINUTE_MS, 9, null)
    expect(minutes.recordOf('b').record).toBe('answered')
    expect(minutes.hour('b').requests).toBe(1)
    expect(minutes.recent('a').sinceRecovery).toEqual({ requests: 1, failed: 0 })
  })

  test('a key has the number of its attempts alone, also while it is the only key and after one is added', () => {
    const minutes = new ChannelMinutes(() => 1_000 * MINUTE_MS)
    minutes.restore('a', 1_000 * MINUTE_MS, 100, null)
    minutes.note(CHANNEL, 100, undefined, 'k1')
    minutes.note(CHANNEL, 100, 'status 500', 'k1')
    expect(['k1', 'added'].map((key) => minutes.ofKey('a', key))).toEqual([2, 0])
    minutes.note(CHANNEL, 100, undefined, 'added')
    expect(['k1', 'added'].map((key) => minutes.ofKey('a', key))).toEqual([2, 1])
  })

  test('the statistics of a channel drop a minute after an hour, however much time has passed since', () => {
    let nowMs = 1_000 * MINUTE_MS
    const minutes = new ChannelMinutes(() => nowMs)
    const requests = (): number => minutes.of('a').reduce((sum, minute) => sum + minute.requests, 0)
    minutes.note(CHANNEL, 100, undefined, 'k1')
    nowMs += 59 * MINUTE_MS
    expect(requests()).toBe(1)
    nowMs += MINUTE_MS
    expect(requests()).toBe(0)
    minutes.note(CHANNEL, 100, undefined, 'k1')
    expect(requests()).toBe(1)
    nowMs += 600 * MINUTE_MS
    expect(requests()).toBe(0)
  })

  test('the statistics of a channel have latency percentiles for each minute with an error of at most a tenth', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 600_000 }), { minLength: 1 }), (durations) => {
        const minutes = new ChannelMinutes(() => MINUTE_MS)
        for (const tookMs of durations) minutes.note(CHANNEL, tookMs, undefined, 'k1')
        const sorted = durations.toSorted((a, b) => a - b)
        const { p50_ms, p95_ms } = minutes.of('a').at(-1) ?? { p50_ms: null, p95_ms: null }
        const pairs = [
          [p50_ms, 0.5],
          [p95_ms, 0.95],
        ] as const
        for (const [found, share] of pairs) {
          const exact = sorted[Math.ceil(share * sorted.length) - 1] as number
          expect(Math.abs((found as number) - exact)).toBeLessThanOrEqual(exact / 10 + 1)
        }
      }),
    )
  })
})
