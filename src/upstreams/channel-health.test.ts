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
  for (let i = 0; i < times; i++) health.begin(ill).failed(nowMs)
}

describe('the health of a channel', () => {
  test('a channel is healthy until the fifth consecutive failure', () => {
    fail(4, 0)
    expect(health.isCircuitOpen(ill, 0)).toBe(false)
    health.begin(ill).succeeded()
    fail(4, 0)
    expect(health.isCircuitOpen(ill, 0)).toBe(false)
    fail(1, 0)
    expect(health.isCircuitOpen(ill, 0)).toBe(true)
    expect(health.isCircuitOpen(well, 0)).toBe(false)
    expect(health.openCircuits(0)).toBe(1)
  })

  test('a channel is tried by one attempt after a cooldown of five seconds', () => {
    fail(5, 0)
    expect(health.isCircuitOpen(ill, 4_999)).toBe(true)
    expect(health.isCircuitOpen(ill, 5_000)).toBe(false)
    const probe = health.begin(ill)
    expect(health.isCircuitOpen(ill, 5_000)).toBe(true)
    probe.succeeded()
    expect(health.isCircuitOpen(ill, 5_001)).toBe(false)
    expect(health.openCircuits(5_001)).toBe(0)
  })

  test('a channel that fails its probe has a cooldown twice as long, at most a minute', () => {
    fail(5, 0)
    let nowMs = 5_000
    for (const restMs of [10_000, 20_000, 40_000, 60_000, 60_000]) {
      fail(1, nowMs)
      expect(health.isCircuitOpen(ill, nowMs + restMs - 1)).toBe(true)
      expect(health.isCircuitOpen(ill, nowMs + restMs)).toBe(false)
      nowMs += restMs
    }
  })

  test('a channel whose probe had no result may be probed by another, however the probe ended', () => {
    fail(5, 0)
    expect(() => {
      using probe = health.begin(ill)
      expect(probe).toBeDefined()
      expect(health.isCircuitOpen(ill, 5_000)).toBe(true)
      throw new Error('the charge could not be written')
    }).toThrow()
    expect(health.isCircuitOpen(ill, 5_000)).toBe(false)
    expect(health.openCircuits(5_000)).toBe(0)
  })

  test('an attempt beside a probe does not decide about the channel when the probe had no result', () => {
    fail(5, 0)
    const beside = health.begin(well)
    const probe = health.begin(ill)
    const second = health.begin(ill)
    beside[Symbol.dispose]()
    second[Symbol.dispose]()
    expect(health.isCircuitOpen(ill, 5_000)).toBe(true)
    probe[Symbol.dispose]()
    expect(health.isCircuitOpen(ill, 5_000)).toBe(false)
  })

  test('a channel that is probed stays half-open until its trial succeeds', () => {
    fail(5, 0)
    expect(health.isCircuitOpen(ill, 5_000)).toBe(false)
    expect(health.isCircuitOpen({ ...ill, probe: 1_000 }, 5_000)).toBe(true)
    health.begin(ill).succeeded()
    expect(health.isCircuitOpen({ ...ill, probe: 1_000 }, 5_000)).toBe(false)
  })

  test('each attempt reports once: its first result counts', () => {
    for (let i = 0; i < 4; i++) {
      const trial = health.begin(ill)
      trial.failed(0)
      trial.failed(0)
      trial.succeeded()
      trial[Symbol.dispose]()
    }
    expect(health.isCircuitOpen(ill, 0)).toBe(false)
    fail(1, 0)
    expect(health.isCircuitOpen(ill, 0)).toBe(true)
  })

  test('a channel is not affected by calls that were in flight when its cooldown began', () => {
    const trials = Array.from({ length: 30 }, () => health.begin(ill))
    for (const [i, trial] of trials.entries()) trial.failed(i)
    expect(health.isCircuitOpen(ill, 5_004)).toBe(false)
  })

  test('a channel has a cooldown at once where the upstream asks for it, at most five minutes', () => {
    health.begin(ill).failed(0, 20_000)
    expect(health.isCircuitOpen(ill, 19_999)).toBe(true)
    expect(health.isCircuitOpen(ill, 20_000)).toBe(false)
    health.begin(ill).succeeded()
    health.begin(ill).failed(0, 1e12)
    expect(health.isCircuitOpen(ill, 300_000)).toBe(false)
  })
})
