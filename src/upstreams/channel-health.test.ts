import { beforeEach, describe, expect, test } from 'vitest'
import { channelOf } from '../../test/channel.ts'
import { ChannelHealth } from './channel-health.ts'

const ill = channelOf({ name: 'ill' })
const well = channelOf({ name: 'well' })

let health: ChannelHealth
beforeEach(() => {
  health = new ChannelHealth()
})

function fail(times: number, nowMs: number): void {
  for (let i = 0; i < times; i++) {
    health.begin(ill)
    health.failed(ill, nowMs)
  }
}

describe('the health of a channel', () => {
  test('is not in doubt before the fifth failure in a row', () => {
    fail(4, 0)
    expect(health.isResting(ill, 0)).toBe(false)
    health.works(ill)
    fail(4, 0)
    expect(health.isResting(ill, 0)).toBe(false)
    fail(1, 0)
    expect(health.isResting(ill, 0)).toBe(true)
    expect(health.isResting(well, 0)).toBe(false)
    expect(health.resting(0)).toBe(1)
  })

  test('is found out by one call after five seconds of rest', () => {
    fail(5, 0)
    expect(health.isResting(ill, 4_999)).toBe(true)
    expect(health.isResting(ill, 5_000)).toBe(false)
    health.begin(ill)
    expect(health.isResting(ill, 5_000)).toBe(true)
    health.works(ill)
    expect(health.isResting(ill, 5_001)).toBe(false)
    expect(health.resting(5_001)).toBe(0)
  })

  test('that a probe finds no better makes it rest for twice as long, and never for more than a minute', () => {
    fail(5, 0)
    let nowMs = 5_000
    for (const restMs of [10_000, 20_000, 40_000, 60_000, 60_000]) {
      fail(1, nowMs)
      expect(health.isResting(ill, nowMs + restMs - 1)).toBe(true)
      expect(health.isResting(ill, nowMs + restMs)).toBe(false)
      nowMs += restMs
    }
  })

  test('that a probe did not find out may be probed by another', () => {
    fail(5, 0)
    health.begin(ill)
    health.unknown(ill)
    expect(health.isResting(ill, 5_000)).toBe(false)
  })

  test('is not made worse by calls that were under way when it was sent to rest', () => {
    for (let i = 0; i < 30; i++) health.failed(ill, i)
    expect(health.isResting(ill, 5_004)).toBe(false)
  })

  test('rests at once where the upstream asks for it, but not for longer than five minutes', () => {
    health.failed(ill, 0, 20_000)
    expect(health.isResting(ill, 19_999)).toBe(true)
    expect(health.isResting(ill, 20_000)).toBe(false)
    health.works(ill)
    health.failed(ill, 0, 1e12)
    expect(health.isResting(ill, 300_000)).toBe(false)
  })
})
