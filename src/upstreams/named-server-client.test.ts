import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { NamedServerClient } from './named-server-client.ts'

test('a request that waits for a connection has not been sent', async () => {
  const got: string[] = []
  const first = Promise.withResolvers<void>()
  const isHeld = Promise.withResolvers<void>()
  const server = createServer((request, response) => {
    request.on('data', (chunk: Buffer) =>
      got.push(`${request.headers['content-length']} ${chunk.toString()}`),
    )
    request.on('end', () => {
      isHeld.resolve()
      void first.promise.then(() => response.end())
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const client = new NamedServerClient({ connections: 1, maxMs: 3_000 })
  onTestFinished(() => client.close())
  const sent: string[] = []
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const post = async (body: string, signal = new AbortController().signal) => {
    const answer = await client.request('POST', url, {}, body, signal, () => sent.push(body))
    await answer.body.dump()
  }
  const holding = post('é')
  await isHeld.promise
  const leaving = new AbortController()
  const left = post('left', leaving.signal)
  const waiting = post('waits')
  leaving.abort(new Error('the client left'))
  await expect(left).rejects.toThrow('the client left')
  expect(sent).toEqual(['é'])
  first.resolve()
  await Promise.all([holding, waiting])
  expect(sent).toEqual(['é', 'waits'])
  expect(got).toEqual(['2 é', '5 waits'])
})
