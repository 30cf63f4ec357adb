import { beforeEach, describe, expect, test } from 'vitest'
import { channelOf } from '../../test/samples/channel.ts'
import { AccountRests } from './account-rests.ts'

/** `docs/operations.md: Channels that fail`. */
const ACCOUNT = { channel: 'c', key: 'k', model: 'm' }
const LIMITED = { kind: 'limited', cause: 'status 429' } as const
const REFUSED = { kind: 'key_refused', cause: 'status 401' } as const

let rests: AccountRests
beforeEach(() => {
  rests = new AccountRests()
})

const isResting = (nowMs: number, model = 'm'): boolean => rests.isResting('c', 'k', model, nowMs)

describe('a rest after a 429 without a stated end', () => {
  test('the rest lasts a second, doubles up to a minute while it goes on, and starts anew after a success', () => {
    let nowMs = 0
    for (const seconds of [1, 2, 4, 8, 16, 32, 60, 60]) {
      rests.start(ACCOUNT, LIMITED, nowMs, nowMs)
      expect(isResting(nowMs + seconds * 1000 - 1), `${seconds} s`).toBe(true)
      nowMs += seconds * 1000
      expect(isResting(nowMs), `${seconds} s`).toBe(false)
    }
    rests.succeeded(ACCOUNT, nowMs)
    expect(rests.isEmpty).toBe(true)
    rests.start(ACCOUNT, LIMITED, nowMs, nowMs)
    expect([isResting(nowMs + 999), isResting(nowMs + 1000)]).toEqual([true, false])
  })

  test('many 429s at once double the rest once, and one during a rest does not prolong it', () => {
    for (let at = 0; at < 20; at += 1) rests.start(ACCOUNT, LIMITED, at, 0)
    expect([isResting(999), isResting(1000)]).toEqual([true, false])
    rests.start(ACCOUNT, LIMITED, 500, 400)
    expect(isResting(1000)).toBe(false)
  })

  test('the rest is about one model of the key', () => {
    rests.start(ACCOUNT, LIMITED, 0, 0)
    expect(isResting(10, 'other')).toBe(false)
  })
})

test.each([
  [7_000, 7_000],
  [90_000, 90_000],
  [999_999_999, 300_000],
])('after a 429 that asks for %i ms the account rests for %i ms', (statedMs, restMs) => {
  rests.start(ACCOUNT, { ...LIMITED, statedMs }, 0, 0)
  expect([isResting(restMs - 1), isResting(restMs)]).toEqual([true, false])
})

describe('a fault of an account', () => {
  const all = { ...ACCOUNT, model: '' }

  test('a refused key rests for a minute for all models, or longer if the answer asks for it', () => {
    rests.start(all, REFUSED, 0, 0)
    expect([isResting(59_999), isResting(59_999, 'other'), isResting(60_000)]).toEqual([true, true, false])
    rests.start(all, { ...REFUSED, statedMs: 90_000 }, 60_000, 60_000)
    expect([isResting(149_999), isResting(150_000)]).toEqual([true, false])
    rests.succeeded(all, 150_000)
    rests.start(all, { ...REFUSED, statedMs: 1_000 }, 150_000, 150_000)
    expect(isResting(209_999)).toBe(true)
  })

  test('a channel has no usable key while each of its keys is at fault, until one succeeds', () => {
    const channel = channelOf({ name: 'c', keys: ['k', 'l'], models: ['m', 'n'] })
    rests.start(all, REFUSED, 0, 0)
    expect(rests.faultOf(channel)).toBeUndefined()
    rests.start({ ...all, key: 'l' }, { ...REFUSED, cause: 'status 403' }, 1, 1)
    expect(rests.faultOf(channel)?.cause).toBe('status 403')
    // The rests are over, but nothing has shown that a key works.
    expect(isResting(900_000)).toBe(false)
    expect(rests.faultOf(channel)).toBeDefined()
    rests.succeeded({ ...all, key: 'l', model: 'm' }, 900_000)
    expect(rests.faultOf(channel)).toBeUndefined()
  })

  test('a channel with keys that lack one of its models has a usable key for the others', () => {
    const channel = channelOf({ name: 'c', keys: ['k'], models: ['m', 'n'] })
    const lacks = { kind: 'account_lacks_model', cause: 'status 403' } as const
    rests.start(ACCOUNT, lacks, 0, 0)
    expect(rests.faultOf(channel)).toBeUndefined()
    rests.start({ ...ACCOUNT, model: 'n' }, lacks, 0, 0)
    expect(rests.faultOf(channel)).toBeDefined()
  })

  test('a channel whose keys have only reached a limit has usable keys', () => {
    const channel = channelOf({ name: 'c', keys: ['k'], models: ['m'] })
    rests.start(ACCOUNT, LIMITED, 0, 0)
    expect(rests.faultOf(channel)).toBeUndefined()
  })
})

describe('an account whose rest is over', () => {
  test('a single call tries the account, and the others avoid it until that call is over', () => {
    rests.start(ACCOUNT, LIMITED, 0, 0)
    const end = rests.begin(ACCOUNT)
    expect(isResting(1_500)).toBe(true)
    end?.()
    expect(isResting(1_500)).toBe(false)
  })

  test('an account that never rested needs no trial', () => {
    expect(rests.begin(ACCOUNT)).toBeUndefined()
  })

  test('the answer to a request that was sent before a rest does not end it', () => {
    rests.start(ACCOUNT, LIMITED, 100, 0)
    rests.succeeded(ACCOUNT, 50)
    expect(isResting(200)).toBe(true)
  })
})
