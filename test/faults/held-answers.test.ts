import { once } from 'node:events'
import { type ClientRequest, createServer, request, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { completionText, usageText } from '../fixtures/behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { wholeMessage } from '../fixtures/messages-behaviour.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { untilOver } from '../fixtures/open-calls.ts'

const MIB = 1024 * 1024

let fixture: Fixture
let files: Server
const unfinished = new Set<ServerResponse>()
let isOneAbandoned = false
const endAll = (): void => {
  isOneAbandoned = true
  for (const reply of unfinished) reply.end()
}
beforeAll(async () => {
  files = createServer(({ url }, reply) => {
    reply.writeHead(200, { 'content-type': 'image/png' })
    // A busy machine may ask for some only after the last that is abandoned.
    if (url !== '/slow' || isOneAbandoned) return void reply.end(Buffer.alloc(17 * MIB))
    // Ends all responses when the gateway has abandoned one of them.
    unfinished.add(reply.on('close', endAll))
    reply.write(Buffer.alloc(17 * MIB))
  })
  files.listen(0, '127.0.0.1')
  await once(files, 'listening')
  fixture = await startFixture((upstream) => ({
    options: { body_limit: '32MiB', retries: 0, media: { allow_private_networks: true, timeout: '60s' } },
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

test('a response of more than 64 MiB that is not a stream is an error that costs nothing', async () => {
  const body = completionText('x'.repeat(65 * MIB), usageText(10, 5))
  fixture.upstream.script('m', { kind: 'whole', body })
  const answer = await fixture.chat('ann', { model: 'm', messages: [{ role: 'user', content: 'hi' }] })
  expect([answer.status, answer.bytes.length < MIB]).toEqual([500, true])
  // A refusal does not wait for its row in the log.
  const charges = (): readonly number[] =>
    databaseOf(fixture.gateway.dataDir)
      .usage()
      .map(({ quota }) => quota)
  await expect.poll(charges).toEqual([0])
})

test('a stream that breaks off while it is collected for a whole answer gives its memory back', async () => {
  const head = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 99999999\r\n\r\n'
  const chunk = { choices: [{ index: 0, delta: { content: 'x'.repeat(33 * MIB) }, finish_reason: null }] }
  const frame = `data: ${JSON.stringify(chunk)}\n\n`
  fixture.upstream.script('m', { kind: 'raw', bytes: head + frame, ending: 'close' })
  const ask = (content: string) => fixture.chat('ann', { model: 'm', messages: [{ role: 'user', content }] })
  // Together they would have used up the 168 MiB of their user.
  for (let count = 0; count < 5; count++) expect((await ask('hi')).status).toBe(500)
  fixture.upstream.script('m', { kind: 'whole' })
  expect((await ask('x'.repeat(28 * MIB))).status).toBe(200)
})

test('all files that are fetched for one call may together have at most 32 MiB', async () => {
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

test('files that are fetched take their memory from the share of their user', async () => {
  const { port } = files.address() as AddressInfo
  fixture.upstream.script('messages', wholeMessage([{ text: 'A picture.' }]))
  const naming = (name: string): object => {
    const content = [{ type: 'image_url', image_url: { url: `http://127.0.0.1:${port}/${name}` } }]
    return { model: 'messages', messages: [{ role: 'user', content }] }
  }
  // With its base64 form and the request, each takes 45 of 168 MiB until its call ends.
  const answers = await Promise.all(Array.from({ length: 8 }, () => fixture.chat('ann', naming('slow'))))
  const statuses = Map.groupBy(answers, ({ status }) => status)
  expect(new Set(statuses.keys())).toEqual(new Set([200, 503]))
  for (const { text } of statuses.get(503) ?? []) expect(text).toContain('"code":"overloaded"')
  expect((await fixture.chat('ann', naming('fast'))).status).toBe(200)
})

test("the copies of a request body that a conversion makes count against the user's memory share until the call ends", async () => {
  const body = (model: string): string =>
    JSON.stringify({ model, messages: [{ role: 'user', content: 'x'.repeat(28 * MIB) }] })
  const open: ClientRequest[] = []
  /** Sends a call that its upstream does not answer. Resolves to its status, if it has one. */
  const sent = (text: string): Promise<number | undefined> => {
    const headers = { authorization: 'Bearer sk-ann', 'content-type': 'application/json' }
    const path = `${fixture.gateway.url}/v1/chat/completions`
    const call = request(path, { method: 'POST', agent: false, headers })
    open.push(call)
    call.end(text)
    return new Promise((resolve) => {
      call.on('response', (answer) => resolve(answer.resume().statusCode))
      call.on('error', () => resolve(undefined))
    })
  }
  const arrived = async (model: string, count: number): Promise<string> => {
    await expect.poll(() => fixture.upstream.received(model).length).toBe(count)
    return 'arrived'
  }
  for (const model of ['m', 'messages']) fixture.upstream.script(model, { kind: 'silence' })
  const before = fixture.upstream.received('messages').length
  const converted = body('messages')
  try {
    // A converted call takes 28 MiB and twice what is above 4 MiB of it, so that two of them leave 16 of 168.
    for (const count of [1, 2]) {
      void sent(converted)
      await arrived('messages', before + count)
    }
    expect(await sent(converted)).toBe(503)
    open.shift()?.destroy()
    // The memory of the call that was left is free again.
    const again = () => Promise.race([sent(converted), arrived('messages', before + 3)])
    await expect.poll(again).toBe('arrived')
  } finally {
    for (const call of open) call.destroy()
  }
  await untilOver(fixture.gateway.url, 0)
  const native = body('m')
  const earlier = fixture.upstream.received('m').length
  try {
    for (const count of [1, 2, 3])
      expect(await Promise.race([sent(native), arrived('m', earlier + count)])).toBe('arrived')
  } finally {
    for (const call of open) call.destroy()
  }
})
