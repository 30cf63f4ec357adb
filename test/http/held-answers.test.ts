import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { completionText, usageText } from '../equipment/behaviour.ts'
import { channel, priced, ROOT, token, user } from '../equipment/configuration.ts'
import { databaseOf } from '../equipment/database.ts'
import { type Fixture, startFixture } from '../equipment/fixture.ts'

const MIB = 1024 * 1024

let fixture: Fixture
let files: Server
beforeAll(async () => {
  files = createServer((_, reply) => {
    reply.writeHead(200, { 'content-type': 'image/png' }).end(Buffer.alloc(17 * MIB))
  })
  files.listen(0, '127.0.0.1')
  await once(files, 'listening')
  fixture = await startFixture((upstream) => ({
    options: { retries: 0, media: { allow_private_networks: true, timeout: '60s' } },
    models: priced(['m', 'messages']),
    channels: [
      channel('m', upstream.baseUrl('m')),
      channel('messages', upstream.baseUrl('messages'), { protocol: 'messages' }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(async () => {
  await fixture?.close()
  files?.close()
})

test('an answer of more than 64 MiB that is no stream is an error that costs nothing', async () => {
  const body = completionText('x'.repeat(65 * MIB), usageText(10, 5))
  fixture.upstream.script('m', { kind: 'whole', body })
  const answer = await fixture.chat('ann', { model: 'm', messages: [{ role: 'user', content: 'hi' }] })
  expect([answer.status, answer.bytes.length < MIB]).toEqual([500, true])
  // A refusal does not wait for its row in the log.
  const charges = (): readonly number[] =>
    databaseOf(fixture.gateway.dataDir)
      .usage()
      .map(({ quota }) => quota)
  await expect.poll(charges, { timeout: 10_000 }).toEqual([0])
})

test('files that one call has fetched are 32 MiB together', async () => {
  const { port } = files.address() as AddressInfo
  const picture = (name: string): object => ({
    type: 'image_url',
    image_url: { url: `http://127.0.0.1:${port}/${name}` },
  })
  const content = [picture('a'), picture('b')]
  const answer = await fixture.chat('ann', { model: 'messages', messages: [{ role: 'user', content }] })
  expect(answer.status).toBe(400)
  expect(answer.text).toContain('larger than')
  expect(fixture.upstream.received('messages')).toEqual([])
})
