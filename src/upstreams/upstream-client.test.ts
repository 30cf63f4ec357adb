import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { channelOf } from '../../test/samples/channel.ts'
import type { Hold } from '../domain/hold.ts'
import { requestWholeResponse } from './exchange.ts'
import { Providers } from './providers.ts'
import {
  destinationOf,
  isDestinationConfigured,
  UpstreamClient,
  withoutRefusedMembers,
} from './upstream-client.ts'

const HOLD = { isSettled: false } as Hold
const ANSWER = 'HTTP/1.1 200 OK\r\nkeep-alive: timeout=60\r\ncontent-length: 2\r\n\r\n{}'

test('the connections of a channel stay open when its settings change, and are closed when its key changes', async () => {
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
    proxyOf: () => undefined,
  })
  onTestFinished(() => {
    client.close()
    server.close()
  })
  const answer = await requestWholeResponse(
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
  // The timeout is well below the minute for which an idle connection is kept.
  await expect.poll(() => sockets.map(({ destroyed }) => destroyed), { timeout: 20_000 }).toEqual([true])
})

const ASKED = Buffer.from('{"model":"m", "stream":true,"stream_options":{"include_usage":true},"x":1.0}')

test.each([
  ['https://api.mistral.ai/v1', '{"model":"m", "stream":true,"x":1.0}'],
  ['https://notmistral.ai/v1', ASKED.toString()],
  ['https://api.openai.com/v1', ASKED.toString()],
])('a chat request for %s has no member that the provider refuses', (baseUrl, expected) => {
  expect(withoutRefusedMembers(ASKED, { protocol: 'chat' }, { base_url: baseUrl }).toString()).toBe(expected)
})

test('request fields that a provider refuses are removed from chat requests only', () => {
  const channel = { base_url: 'https://api.mistral.ai/v1' }
  expect(withoutRefusedMembers(ASKED, { protocol: 'messages' }, channel)).toBe(ASKED)
})

describe('a request that has more JSON values than one of a client, because the gateway has converted or composed it', () => {
  const values = `[${Array.from({ length: 200_001 }, () => 0).join(',')}]`
  const mark = '{"cache_control":{"type":"ephemeral","ttl":"1h"}}'
  const cases = [
    ['system prompt', 'chat', '/chat/completions', { system_prompt: 'x' }],
    ['refused member', 'chat', '/chat/completions', { base_url: 'https://api.mistral.ai/v1' }],
    ['counted prompt', 'gemini', '/models/m:countTokens', { system_prompt: 'x' }],
    ['Vertex messages', 'messages', '/messages', { provider: 'vertex' }],
    ['Vertex tier', 'gemini', '/models/m:generateContent', { provider: 'vertex' }],
    ['Bedrock messages', 'messages', '/messages', { provider: 'bedrock' }],
    ['Bedrock count', 'messages', '/messages/count_tokens', { provider: 'bedrock' }],
  ] as const
  const body = Buffer.from(
    `{"model":"m","stream_options":{},"serviceTier":"flex","messages":[],"system":[${mark}],"generateContentRequest":{"more":${values}},"tools":[{"name":"t","defer_loading":true,"input_schema":${values}}]}`,
  )

  test.each(cases)('is changed as its channel needs it: %s', (_, protocol, path, fields) => {
    const client = new UpstreamClient('mark', {
      channels: () => [],
      onUnsolicited: () => {},
      providers: new Providers(() => Promise.reject(new Error('no token is needed'))),
      proxyOf: () => undefined,
    })
    onTestFinished(() => client.close())
    const request = { protocol, path, headers: [], body, upstreamModel: 'claude-3-5-sonnet' }
    const adapted = client.adapt(channelOf({ protocol: [protocol], ...fields }), request)
    expect(adapted.body).not.toBe(body)
  })
})

const channel = channelOf({ name: 'a', base_url: 'https://x.example/v1', keys: ['sk-one', 'sk-two'] })
const destination = destinationOf(channel, 'sk-one')

describe('a destination', () => {
  test('connections to upstreams are shared by calls with the same channel, origin and key, also after a reload', () => {
    const again = channelOf({ name: 'a', base_url: 'https://x.example/v2', keys: ['sk-three', 'sk-one'] })
    expect(destinationOf(again, 'sk-one').id).toBe(destination.id)
  })

  test.each([
    ['channel', channelOf({ ...channel, name: 'b' }), 'sk-one'],
    ['origin', channelOf({ ...channel, base_url: 'https://x.example:8443/v1' }), 'sk-one'],
    ['scheme', channelOf({ ...channel, base_url: 'http://x.example/v1' }), 'sk-one'],
    ['key', channel, 'sk-two'],
  ])('an upstream connection is not shared with calls of another %s', (_, other, key) => {
    expect(destinationOf(other, key).id).not.toBe(destination.id)
  })

  test('the internal name of a shared upstream connection does not contain the key', () => {
    expect(JSON.stringify(destination)).not.toContain('sk-one')
  })

  test.each([
    ['is there', true, [channelOf({ name: 'b' }), channel]],
    ['is gone', false, [channelOf({ ...channel, name: 'b' })]],
    ['has moved', false, [channelOf({ ...channel, base_url: 'https://y.example/v1' })]],
    ['has other keys', false, [channelOf({ ...channel, keys: ['sk-two'] })]],
    ['has no keys any more', false, [channelOf({ ...channel, keys: [] })]],
  ])(
    'the connections of a channel stay open after a reload only if they can still be used: the channel %s: %s',
    (_, expected, channels) => {
      expect(isDestinationConfigured(destination, channels)).toBe(expected)
    },
  )

  test('a channel without keys does not share connections with a channel of the same address that has keys', () => {
    const open = channelOf({ ...channel, keys: [] })
    expect(isDestinationConfigured(destinationOf(open, ''), [open])).toBe(true)
    expect(isDestinationConfigured(destinationOf(open, ''), [channel])).toBe(false)
  })
})
