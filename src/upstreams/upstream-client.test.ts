import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { channelOf } from '../../test/channel.ts'
import type { Hold } from '../domain/hold.ts'
import { exchangeWhole } from './exchange-whole.ts'
import { Providers } from './providers.ts'
import { UpstreamClient } from './upstream-client.ts'

const HOLD = { isSettled: false } as Hold
const ANSWER = 'HTTP/1.1 200 OK\r\nkeep-alive: timeout=60\r\ncontent-length: 2\r\n\r\n{}'

test('the connections of a channel stay open when its settings change, and are closed when its key does', async () => {
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket.on('error', () => {}).on('data', () => socket.write(ANSWER)))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const base_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  const channel = channelOf({ base_url, keys: ['one'] })
  let channels = [channel]
  const client = new UpstreamClient('mark', {
    channels: () => channels,
    onUnsolicited: () => {},
    providers: new Providers(() => Promise.reject(new Error('no token is needed'))),
  })
  onTestFinished(() => {
    client.close()
    server.close()
  })
  const answer = await exchangeWhole(
    client,
    { hold: HOLD, channel, key: { value: 'one' } },
    { protocol: 'chat', path: '/chat/completions', headers: [], body: Buffer.from('{}') },
    { maxBytes: 100, timeoutMs: 10_000 },
  )
  expect(answer).toMatchObject({ status: 200 })
  channels = [channelOf({ base_url, keys: ['one', 'two'], groups: ['other'] })]
  await sleep(300)
  expect(sockets.map(({ destroyed }) => destroyed)).toEqual([false])
  channels = [channelOf({ base_url, keys: ['two'] })]
  // Well before the minute for which an idle connection is kept.
  await expect.poll(() => sockets.map(({ destroyed }) => destroyed), { timeout: 20_000 }).toEqual([true])
})
