import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { REALISTIC_PACE, type Pace, sendAtPace } from './pace.ts'
import type { Reply } from './upstream.ts'

const STREAM: Reply = {
  kind: 'stream',
  frames: [
    { text: 'a', tokens: 0 },
    { text: 'b', tokens: 1 },
    { text: 'c', tokens: 1 },
  ],
}

/** Server that sends the reply to its first client, and a promise of its completion. */
async function serving(reply: Reply, pace: Pace) {
  const { promise: sent, resolve } = Promise.withResolvers<PromiseSettledResult<void>>()
  const server = createServer((_, response) => {
    void Promise.allSettled([sendAtPace(response, reply, pace)]).then(([result]) => resolve(result))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { server, sent, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` }
}

test('the simulator sends the first token after a quarter of a second, and the other tokens one by one', async () => {
  const { server, url } = await serving(STREAM, REALISTIC_PACE)
  const started = performance.now()
  const call = request(url).end()
  const arrivals: { text: string; at: number }[] = []
  call.on('response', (response) => {
    response.on('data', (chunk: Buffer) =>
      arrivals.push({ text: chunk.toString(), at: performance.now() - started }),
    )
  })
  await once(call, 'close')
  server.close()
  expect(arrivals.map(({ text }) => text)).toEqual(['a', 'b', 'c'])
  expect(arrivals[0]?.at).toBeGreaterThan(200)
})

test('a whole response of the simulator takes as long as its tokens would as a stream', async () => {
  const { server, url } = await serving(
    { kind: 'whole', body: { said: 1 }, tokens: 10 },
    { firstTokenMs: 50, tokenMs: 20, maxWholeMs: 10_000 },
  )
  const started = performance.now()
  expect(await (await fetch(url)).json()).toEqual({ said: 1 })
  expect(performance.now() - started).toBeGreaterThan(200)
  server.close()
})

test('a response of the simulator that is not streamed takes at most the configured maximum time, however many tokens it has', async () => {
  expect(REALISTIC_PACE.maxWholeMs).toBeLessThan(600)
  const { server, url } = await serving(
    { kind: 'whole', body: { said: 1 }, tokens: 1_000_000 },
    { firstTokenMs: 50, tokenMs: 20, maxWholeMs: 60 },
  )
  expect(await (await fetch(url)).json()).toEqual({ said: 1 })
  server.close()
})

test('the simulator abandons a response at once when its client leaves', async () => {
  const { server, sent, url } = await serving(STREAM, {
    firstTokenMs: 0,
    tokenMs: 60_000,
    maxWholeMs: 60_000,
  })
  const call = request(url)
  call.on('error', () => {})
  call.end()
  await once(call, 'response')
  call.destroy()
  expect(await sent).toMatchObject({ status: 'rejected', reason: { name: 'AbortError' } })
  server.close()
})
