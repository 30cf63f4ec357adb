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
  test('is not in doubt before the fifth failure in a row', () => {
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

  test('is found out by one attempt after five seconds of rest', () => {
    fail(5, 0)
    expect(health.isCircuitOpen(ill, 4_999)).toBe(true)
    expect(health.isCircuitOpen(ill, 5_000)).toBe(false)
    const probe = health.begin(ill)
    expect(health.isCircuitOpen(ill, 5_000)).toBe(true)
    probe.succeeded()
    expect(health.isCircuitOpen(ill, 5_001)).toBe(false)
    expect(health.openCircuits(5_001)).toBe(0)
  })

  test('that a probe finds no better makes it rest for twice as long, and never for more than a minute', () => {
    fail(5, 0)
    let nowMs = 5_000
    for (const restMs of [10_000, 20_000, 40_000, 60_000, 60_000]) {
      fail(1, nowMs)
      expect(health.isCircuitOpen(ill, nowMs + restMs - 1)).toBe(true)
      expect(health.isCircuitOpen(ill, nowMs + restMs)).toBe(false)
      nowMs += restMs
    }
  })

  test('that a probe did not find out may be probed by another, however the probe ended', () => {
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

  test('is not made known by an attempt beside the probe that found out nothing', () => {
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

  test('stays open until its trial succeeds, where the channel is probed', () => {
    fail(5, 0)
    expect(health.isCircuitOpen(ill, 5_000)).toBe(false)
    expect(health.isCircuitOpen({ ...ill, probe: 1_000 }, 5_000)).toBe(true)
    health.begin(ill).succeeded()
    expect(health.isCircuitOpen({ ...ill, probe: 1_000 }, 5_000)).toBe(false)
  })

  test('is told once by each attempt: the first result counts', () => {
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

  test('is not made worse by calls that were under way when it was sent to rest', () => {
    const trials = Array.from({ length: 30 }, () => health.begin(ill))
    for (const [i, trial] of trials.entries()) trial.failed(i)
    expect(health.isCircuitOpen(ill, 5_004)).toBe(false)
  })

  test('rests at once where the upstream asks for it, but not for longer than five minutes', () => {
    health.begin(ill).failed(0, 20_000)
    expect(health.isCircuitOpen(ill, 19_999)).toBe(true)
    expect(health.isCircuitOpen(ill, 20_000)).toBe(false)
    health.begin(ill).succeeded()
    health.begin(ill).failed(0, 1e12)
    expect(health.isCircuitOpen(ill, 300_000)).toBe(false)
  })
})
