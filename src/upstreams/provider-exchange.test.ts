import { crc32 } from 'node:zlib'
import type { UpstreamRequest, UpstreamResponseListener } from '@sluice/http1'
import { expect, test } from 'vitest'
import { channelOf } from '../../test/samples/channel.ts'
import { bedrock } from './bedrock/bedrock.ts'
import { ProviderExchange } from './provider-exchange.ts'
import type { WireRequest } from './provider.ts'

/** The beginning of a message of `total` bytes without headers. */
function prelude(total: number): Buffer {
  const bytes = Buffer.alloc(12)
  bytes.writeUInt32BE(total, 0)
  bytes.writeUInt32BE(crc32(bytes.subarray(0, 8)), 8)
  return bytes
}

test('an unfinished message takes memory as its bytes come, and is read no further while memory is short', async () => {
  const log: (string | number)[] = []
  const enough = Promise.withResolvers<void>()
  const memory = {
    isShort: false,
    resize: (bytes: number) => void log.push(bytes),
    whenEnough: () => enough.promise,
  }
  const sent: UpstreamRequest = {
    isSent: true,
    connectDurationMs: 0,
    pause: () => void log.push('pause'),
    resume: () => void log.push('resume'),
    cancel: () => void log.push('cancel'),
  }
  const sending = Promise.withResolvers<UpstreamResponseListener>()
  const request = { protocol: 'converse', path: '/converse-stream', headers: [], body: Buffer.of() } as const
  const exchange = new ProviderExchange(
    { ...bedrock, request: (asked: WireRequest) => asked },
    request,
    { channel: channelOf({ provider: 'bedrock' }), key: { value: 'k' } },
    { newMemory: () => memory, onHead() {}, onData() {}, onEnd() {}, onError() {} },
    (_, listener) => {
      sending.resolve(listener)
      return sent
    },
  )
  const upstream = await sending.promise
  const contentType = 'application/vnd.amazon.eventstream'
  upstream.onHead({ status: 200, contentType, retryAfter: undefined, headers: {} })
  upstream.onData(Buffer.concat([prelude(1_000), Buffer.alloc(8)]))
  memory.isShort = true
  upstream.onData(Buffer.alloc(30))
  expect(log.splice(0)).toEqual([20, 50, 'pause'])
  // A time-out that comes now is not the channel's.
  expect(exchange.isShort).toBe(true)
  exchange.pause()
  exchange.resume()
  expect(log.splice(0)).toEqual(['pause'])
  memory.isShort = false
  enough.resolve()
  await new Promise(setImmediate)
  expect(log.splice(0)).toEqual(['resume'])
  expect(exchange.isShort).toBe(false)
  exchange.cancel()
  expect(log).toEqual(['cancel', 0])
})
