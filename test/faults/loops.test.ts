import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { call, retryWhileShed } from '../fixtures/client.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { type ScriptedUpstream, startUpstream } from '../fixtures/scripted-upstream.ts'
import { ask } from '../fixtures/fixture.ts'

const MARK = 'x-gateway-via'

let upstream: ScriptedUpstream
let gateway: RunningGateway
beforeAll(async () => {
  upstream = await startUpstream()
  gateway = await startGateway({ config: configuration('http://127.0.0.1:9/v1') })
  // The gateway's address is known only after its start.
  await gateway.restart(configuration(`${gateway.url}/v1`))
})
afterAll(async () => {
  await gateway?.discard()
  await upstream?.stop()
})

function configuration(self: string): Configuration {
  const back = { keys: ['sk-ann'] }
  return {
    models: priced(['loop', 'converted', 'rescued', 'm']),
    channels: [
      channel('loop', self, back),
      channel('converted', self, { ...back, protocol: 'messages' }),
      channel('back', self, { ...back, models: ['rescued'], priority: 1 }),
      channel('out', upstream.baseUrl('m'), { models: ['rescued', 'm'] }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann', { remain_quota: 1_000_000 })])],
  }
}

const chat = (model: string, headers: Record<string, string> = {}) =>
  retryWhileShed(() => call(gateway.url, ask(model), { key: 'ann', headers }))

function returnsLogged(): number {
  return gateway.logs().split('"failure":"loop_detected"').length - 1
}

describe('a channel that leads back to the gateway', () => {
  test.each(['loop', 'converted'])(
    'a call through a channel that leads back to the gateway is refused at its first return, free of charge: %s',
    async (model) => {
      const before = databaseOf(gateway.dataDir).token('token-ann')
      const logged = returnsLogged()
      const answer = await chat(model)
      expect(answer.status, answer.text).toBe(500)
      expect(answer.json().error.type).toBe('api_error')
      expect(answer.json().error.message).toContain('base_url')
      await expect.poll(returnsLogged).toBe(logged + 1)
      const { remain_quota: remain, used_quota: used } = databaseOf(gateway.dataDir).token('token-ann')
      expect([remain, used]).toEqual([before.remain_quota, before.used_quota])
    },
  )

  test('a channel that leads back to the gateway is skipped where another channel serves the model', async () => {
    upstream.script('m', { kind: 'whole', content: 'rescued' })
    const answer = await chat('rescued')
    expect(answer.status, answer.text).toBe(200)
    expect(answer.json().choices[0]?.message.content).toBe('rescued')
  })
})

describe('the header that detects the loop', () => {
  test("an upstream request has the gateway's own loop header, whatever the client sent, the same for all clients", async () => {
    upstream.script('m', { kind: 'whole' })
    for (const given of ['made up', '']) expect((await chat('m', { [MARK]: given })).status).toBe(200)
    const marks = upstream.received('m').map(({ headers }) => headers[MARK])
    expect(new Set(marks).size).toBe(1)
    expect(marks[0]).toMatch(/^[\w-]{43}$/)
  })

  test('a loop header that an upstream saw stops only the call of a client that copies it, and no call of other clients', async () => {
    upstream.script('m', { kind: 'whole' })
    await chat('m')
    const seen = String(upstream.only('m').headers[MARK])
    const replayed = await chat('m', { [MARK]: seen })
    expect(replayed.status).toBe(500)
    expect(replayed.json().error.code).toBe('loop_detected')
    expect((await chat('m')).status).toBe(200)
    // If it is cut off, extended or in other letters, the header is unknown.
    for (const other of [seen.slice(1), `${seen}A`, seen.toLowerCase(), `${seen}, ${seen}`])
      expect((await chat('m', { [MARK]: other })).status).toBe(200)
  })
})
