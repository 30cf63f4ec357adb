import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import process from 'node:process'
import { onTestFinished, expect, test } from 'vitest'
import type { BatchControl } from './behaviour.ts'
import { type Answer, serveRoutes } from './exchange.ts'

interface Serving {
  readonly url: string
  /** Resolves when a client has disconnected. */
  readonly left: Promise<void>
  readonly errors: readonly unknown[]
}

/** Serves a content at `/`. */
async function serving(pieces: () => AsyncIterable<Buffer>): Promise<Serving> {
  const control = { take: () => undefined } as unknown as BatchControl
  const answer = (): Answer => ({ pieces: pieces(), contentType: 'application/x-jsonl' })
  const routes = [{ method: 'GET' as const, path: /^\/$/, step: 'content' as const, answer }]
  const errors: unknown[] = []
  const left = Promise.withResolvers<void>()
  const server = createServer((incoming, response) => {
    response.once('close', left.resolve)
    const exchange = { request: incoming, response, method: 'GET', path: '/', account: 'key' }
    serveRoutes(routes, control, 'chat', { ...exchange, query: new URLSearchParams() }).catch(
      (error: unknown) => errors.push(error),
    )
  })
  server.listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, left: left.promise, errors }
}

test.each(['before', 'while'])(
  'a client that disconnects %s a content is sent ends the content',
  async (moment) => {
    const ended = Promise.withResolvers<void>()
    const { url, left } = await serving(async function* () {
      try {
        if (moment === 'before') await left
        for (;;) yield await Promise.resolve(Buffer.alloc(65_536, 'x'))
      } finally {
        ended.resolve()
      }
    })
    const call = request(url).end()
    await once(call, 'response')
    call.destroy()
    await ended.promise
  },
)

test('a content of many pieces is sent without listeners that stay', async () => {
  const warnings: string[] = []
  const note = (warning: Error): unknown => warnings.push(warning.name)
  process.on('warning', note)
  onTestFinished(() => void process.off('warning', note))
  const { url, errors } = await serving(async function* () {
    for (let piece = 0; piece < 100; piece += 1) yield await Promise.resolve(Buffer.alloc(65_536, 'x'))
  })
  expect((await (await fetch(url)).arrayBuffer()).byteLength).toBe(6_553_600)
  expect([warnings, errors]).toEqual([[], []])
})
