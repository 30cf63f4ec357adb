import { describe, expect, test } from 'vitest'
import { ProviderLimits } from './provider-limits.ts'

const NOW = Date.parse('2026-11-25T12:00:00Z')
const CHANNEL = { name: 'main', keys: ['one', 'two'] }

/** Limits of 1,000 requests for two keys, reset in a minute. Responses state how many requests are left. */
function started() {
  const clock = { ms: NOW }
  const limits = new ProviderLimits(() => clock.ms)
  return {
    clock,
    low: limits.low,
    /** Another node announces what was stated to it. */
    hear: (key: string, remaining: number): void => {
      const requests = { limit: 1_000, remaining, resetsMs: NOW + 60_000 }
      limits.apply(CHANNEL, { key, model: 'm', stated: { requests }, statedMs: clock.ms + 1 })
    },
    state: (key: string, remaining: number, model = 'm'): void => {
      limits.begin(CHANNEL, { value: key }, model, { tokens: 1 })({
        retryAfter: undefined,
        headers: {
          'x-ratelimit-limit-requests': '1000',
          'x-ratelimit-remaining-requests': String(remaining),
          'x-ratelimit-reset-requests': '1m0s',
        },
      })
    },
  }
}

const LOW = { channel: 'main', model: 'm', hadEnough: false, isNew: true, hasEnough: false }
const left = (remaining: number) => ({
  share: remaining / 1_000,
  kind: 'requests',
  remaining,
  resetsMs: NOW + 60_000,
})

describe('a channel is low on a model', () => {
  test('a channel is reported once as newly low when all its keys have less than 5 per cent of a provider limit left', () => {
    const { low, state } = started()
    state('one', 49)
    expect(low.due(0)).toEqual([])
    state('two', 50)
    expect(low.due(1_000)).toEqual([])
    state('two', 49, 'other')
    expect(low.due(2_000)).toEqual([])
    state('two', 40)
    expect(low.due(3_000)).toEqual([{ ...LOW, low: left(49) }])
    state('one', 30)
    expect(low.due(4_000)).toEqual([])
    expect(low.due(18_000)).toEqual([{ ...LOW, isNew: false, low: left(40) }])
  })

  test('only the node that saw a provider limit of a channel become low reports it as new; nodes that heard of it report later', () => {
    const { low, state, hear } = started()
    expect(low.due(-1_000)).toEqual([])
    for (const key of CHANNEL.keys) hear(key, 10)
    expect(low.due(0)).toEqual([])
    state('one', 9)
    expect(low.due(1_000)).toEqual([])
    expect(low.due(17_000)).toEqual([{ ...LOW, isNew: false, low: left(10) }])
    hear('two', 900)
    hear('two', 8)
    expect(low.due(18_000)).toEqual([])
    state('two', 900)
    expect(low.due(19_000)).toEqual([{ ...LOW, isNew: false, hadEnough: true, low: undefined }])
    state('two', 7)
    expect(low.due(20_000)).toEqual([{ ...LOW, low: left(9) }])
  })

  test('a channel low on provider limits is reported again only after one of its keys had more than 10 per cent left', () => {
    const { low, state } = started()
    for (const key of CHANNEL.keys) state(key, 10)
    expect(low.due(0)).toHaveLength(1)
    state('one', 100)
    state('one', 10)
    expect(low.due(1_000)).toEqual([])
    state('one', 101)
    state('one', 9)
    expect(low.due(2_000)).toEqual([{ ...LOW, hadEnough: true, low: left(10) }])
    state('two', 500)
    expect(low.due(3_000)).toEqual([{ ...LOW, hadEnough: true, low: undefined, isNew: false }])
  })

  test('a channel is reported as low on provider limits even if it was low for less than the reporting interval', () => {
    const { low, state } = started()
    low.due(0)
    for (const key of CHANNEL.keys) state(key, 10)
    state('two', 500)
    expect(low.due(1_000)).toEqual([{ ...LOW, low: left(10), hasEnough: true }])
  })

  test('a provider limit of a channel that is low counts as low until the limit is reset', () => {
    const { clock, low, state } = started()
    for (const key of CHANNEL.keys) state(key, 10)
    expect(low.due(0)).toHaveLength(1)
    clock.ms += 60_000
    expect(low.due(1_000)).toEqual([{ ...LOW, hadEnough: true, low: undefined, isNew: false }])
    for (const key of CHANNEL.keys) state(key, 10)
    expect(low.due(2_000)).toMatchObject([{ isNew: true, low: { remaining: 10 } }])
  })
})

test('a low provider limit of a channel is reported again if its report was not stored, or no report was read for a minute', () => {
  const { low, state } = started()
  for (const key of CHANNEL.keys) state(key, 10)
  expect(low.due(0)).toHaveLength(1)
  low.forget()
  expect(low.due(1_000)).toEqual([{ ...LOW, low: left(10) }])
  expect(low.due(61_001)).toEqual([{ ...LOW, low: left(10) }])
})
