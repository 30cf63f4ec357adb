import { beforeEach, describe, expect, test } from 'vitest'
import { channelOf } from '../../test/samples/channel.ts'
import { MissingModels } from './missing-models.ts'

const channel = channelOf({ name: 'a' })

let missing: MissingModels
beforeEach(() => {
  missing = new MissingModels()
})

describe('a model that a channel answered 404 for', () => {
  test('a model that a channel answered with 404 is skipped at that channel only, for a minute', () => {
    missing.add(channel, 'm', 1_000)
    expect(missing.isMissing(channel, 'm', 60_999)).toBe(true)
    expect([...missing.list(60_999)]).toEqual([{ channel: 'a', model: 'm' }])
    expect([...missing.list(61_000)]).toEqual([])
    expect(missing.isMissing(channel, 'n', 1_000)).toBe(false)
    expect(missing.isMissing(channelOf({ name: 'b' }), 'm', 1_000)).toBe(false)
    expect(missing.isMissing(channel, 'm', 61_000)).toBe(false)
  })

  test('a model is skipped at a channel for a minute after the last 404', () => {
    missing.add(channel, 'm', 0)
    missing.add(channel, 'm', 50_000)
    expect(missing.isMissing(channel, 'm', 109_999)).toBe(true)
  })

  test('a model skipped after a 404 is called again once its channel has answered for it or was reconfigured', () => {
    missing.add(channel, 'm', 0)
    missing.remove(channel, 'm')
    expect(missing.isMissing(channel, 'm', 1)).toBe(false)
    missing.add(channel, 'm', 0)
    expect(missing.isMissing(channelOf({ name: 'a' }), 'm', 1)).toBe(false)
  })

  test('at most a thousand models that channels answered with 404 are remembered', () => {
    missing.add(channel, 'first', 0)
    for (let i = 0; i < 999; i++) missing.add(channel, `m${i}`, 0)
    expect(missing.isMissing(channel, 'first', 1)).toBe(true)
    missing.add(channel, 'm999', 0)
    expect(missing.isMissing(channel, 'first', 1)).toBe(false)
    expect(missing.isMissing(channel, 'm0', 1)).toBe(true)
  })
})
