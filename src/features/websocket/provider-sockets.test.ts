import { expect, test } from 'vitest'
import type { Channel } from '../../domain/records/channel.ts'
import { ProviderSockets } from './provider-sockets.ts'

const channel = (name: string): Channel =>
  ({
    name,
    protocol: ['responses'],
    base_url: 'https://api.openai.com/v1',
    websocket: null,
  }) as unknown as Channel

test('a channel whose provider refused an upgrade gets none for ten minutes; other channels do', () => {
  let nowMs = 1_000_000
  const sockets = new ProviderSockets(
    () => nowMs,
    () => [],
  )
  sockets.refused(channel('a'))
  const reached = (): boolean[] => ['a', 'b'].map((name) => sockets.reach(channel(name)))
  expect(reached()).toEqual([false, true])
  nowMs += 599_999
  expect(reached()).toEqual([false, true])
  nowMs += 1
  expect(reached()).toEqual([true, true])
})
