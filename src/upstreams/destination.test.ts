import { describe, expect, test } from 'vitest'
import { channelOf } from '../../test/channel.ts'
import { destinationOf, isConfigured } from './destination.ts'

const channel = channelOf({ name: 'a', base_url: 'https://x.example/v1', keys: ['sk-one', 'sk-two'] })
const destination = destinationOf(channel, 'sk-one')

describe('a destination', () => {
  test('a destination is the same for the same channel, origin and key, however often it was configured', () => {
    const again = channelOf({ name: 'a', base_url: 'https://x.example/v2', keys: ['sk-three', 'sk-one'] })
    expect(destinationOf(again, 'sk-one').id).toBe(destination.id)
  })

  test.each([
    ['channel', channelOf({ ...channel, name: 'b' }), 'sk-one'],
    ['origin', channelOf({ ...channel, base_url: 'https://x.example:8443/v1' }), 'sk-one'],
    ['scheme', channelOf({ ...channel, base_url: 'http://x.example/v1' }), 'sk-one'],
    ['key', channel, 'sk-two'],
  ])('a destination is different for another %s', (_, other, key) => {
    expect(destinationOf(other, key).id).not.toBe(destination.id)
  })

  test('a destination does not contain the key', () => {
    expect(JSON.stringify(destination)).not.toContain('sk-one')
  })

  test.each([
    ['is there', true, [channelOf({ name: 'b' }), channel]],
    ['is gone', false, [channelOf({ ...channel, name: 'b' })]],
    ['has moved', false, [channelOf({ ...channel, base_url: 'https://y.example/v1' })]],
    ['has other keys', false, [channelOf({ ...channel, keys: ['sk-two'] })]],
    ['has no keys any more', false, [channelOf({ ...channel, keys: [] })]],
  ])('a destination is configured where its channel %s: %s', (_, expected, channels) => {
    expect(isConfigured(destination, channels)).toBe(expected)
  })

  test('a destination without a key is that of a channel without keys', () => {
    const open = channelOf({ ...channel, keys: [] })
    expect(isConfigured(destinationOf(open, ''), [open])).toBe(true)
    expect(isConfigured(destinationOf(open, ''), [channel])).toBe(false)
  })
})
