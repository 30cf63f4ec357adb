import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type FullResponse, send } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { wholeMessage } from '../fixtures/messages-behaviour.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { expectServedDuring } from '../faults/served-during.ts'

/** The number of concurrent downloads that one key may have while others need theirs. */
const SHARE = 8

let fixture: Fixture
let pictures: Server
/** Images that are requested, and whose response is never sent. */
const slow = new Map<ServerResponse, string>()
beforeAll(async () => {
  pictures = createServer((request, reply) => {
    if (!request.url?.startsWith('/slow/'))
      return void reply.writeHead(200, { 'content-type': 'image/png' }).end('picture')
    slow.set(reply, request.url)
    reply.on('close', () => slow.delete(reply))
    reply.writeHead(200, { 'content-type': 'image/png', 'content-length': '1000' }).write('p')
  })
  await once(pictures.listen(0, '127.0.0.1'), 'listening')
  fixture = await startFixture((upstream) => ({
    options: { media: { allow_private_networks: true, timeout: '60s' } },
    rate_limits: {},
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'), { protocol: 'messages' })],
    users: [ROOT, user(2, 'ann', [token('ann')]), user(3, 'bob', [token('bob')])],
  }))
  fixture.upstream.script('m', wholeMessage([{ text: 'A picture.' }]))
})
afterAll(async () => {
  await fixture?.close()
  pictures?.closeAllConnections()
  pictures?.close()
})

/** A request that refers to images by URL. */
function naming(...paths: string[]): object {
  const { port } = pictures.address() as AddressInfo
  const content = paths.map((path) => ({
    type: 'image_url',
    image_url: { url: `http://127.0.0.1:${port}${path}` },
  }))
  return { model: 'm', messages: [{ role: 'user', content }] }
}

const slowOnes = (name: string, count: number): string[] =>
  Array.from({ length: count }, (_, i) => `/slow/${name}/${i}`)
const underWay = (name = ''): number =>
  [...slow.values()].filter((path) => path.startsWith(`/slow/${name}`)).length

const attackers: ReturnType<typeof send>[] = []
function attack(name: string, paths: readonly string[]): ReturnType<typeof send> {
  const sent = send(fixture.gateway.url, naming(...paths), { key: name })
  attackers.push(sent)
  return sent
}
afterEach(async () => {
  for (const sent of attackers.splice(0)) sent.destroy()
  while (underWay() > 0) await sleep(10)
})

let asked = 0
const bob = (): Promise<FullResponse> => fixture.chat('bob', naming(`/fast/${asked++}`, `/fast/${asked++}`))

describe('downloads that never end', () => {
  test("downloads of files for one key's calls that never end do not delay other keys, however many there are", async () => {
    await expectServedDuring(async () => {
      for (let i = 0; i < 4; i++) attack('ann', slowOnes(`ann-${i}`, 10))
      await expect.poll(() => underWay()).toBe(SHARE)
    }, bob)
    expect(underWay()).toBe(SHARE)
  })

  test('downloads of files that never end are aborted when their client hangs up, and waiting downloads begin', async () => {
    const gone = attack('ann', slowOnes('first', 2 * SHARE))
    await expect.poll(() => underWay('first')).toBe(SHARE)
    attack('ann', slowOnes('second', SHARE))
    const waits = attack('ann', slowOnes('third', 1))
    await bob()
    expect([underWay('second'), underWay('third')]).toEqual([0, 0])
    waits.destroy()
    gone.destroy()
    await expect.poll(() => underWay('second')).toBe(SHARE)
    expect([underWay('first'), underWay('third')]).toEqual([0, 0])
    // No upstream request was made for a client that has left.
    await expect.poll(() => fixture.gateway.logs().match(/"status":499/g)?.length ?? 0).toBeGreaterThan(1)
  })

  test('when one file of a request cannot be downloaded, the other downloads of the request are aborted', async () => {
    const { port } = pictures.address() as AddressInfo
    const paths = [...slowOnes('ann', 3), `/nowhere`]
    const body = JSON.stringify(naming(...paths)).replace(`:${port}/nowhere`, ':1/nowhere')
    expect((await fixture.chat('ann', body)).status).toBe(400)
    await expect.poll(() => underWay()).toBe(0)
  })
})
