import { describe, expect, test, vi } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { call, open } from '../fixtures/client.ts'
import { channel, PLAIN_PRICE, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { askStream } from '../fixtures/fixture.ts'
import { patientProgram } from '../fixtures/patient-program.ts'
import { setNodes, SHARED } from './fixture.ts'

const ADMIN = { id: 1, accessToken: ROOT.access_token }
const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const BEN = { id: 3, accessToken: 'the-access-token-of-ben' }

interface Listed {
  readonly items: readonly { readonly id: string }[]
}

describe.each(SHARED)('calls under way on $name', (engine) => {
  test('a running call of another node is listed when all nodes are requested, and can be stopped by those allowed to', async () => {
    const { upstream, gateways } = await setNodes(
      engine,
      2,
      (of) => ({
        rate_limits: { global: { requests: 0 }, critical: { requests: 0 } },
        models: priced(['m']),
        channels: [channel('m', of.baseUrl('m'))],
        users: [
          ROOT,
          user(2, 'ann', [token('ann')]),
          user(3, 'ben', [token('ben')], { access_token: BEN.accessToken }),
        ],
      }),
      { program: patientProgram },
    )
    const [here = '', there = ''] = gateways.map(({ url }) => url)
    upstream.script('m', { kind: 'stream', events: 3, word: 'drip ', ending: 'stall' })
    const live = await open(there, askStream('m'), { key: 'ann' })
    await live.until('drip')
    const id = String(live.headers['x-request-id'])
    const stop = async (account: typeof ADMIN): Promise<number> =>
      (await manage(here, account, `POST /api/running/${id}/stop`)).status
    // A node may not know yet that there is another.
    await vi.waitFor(
      async () => {
        const { data } = await manage<Listed & { others: Listed[] }>(
          here,
          ADMIN,
          'GET /api/running?nodes=all',
        )
        expect(data.items).toEqual([])
        expect(data.others.flatMap(({ items }) => items.map((one) => one.id))).toEqual([id])
      },
      { timeout: 60_000, interval: 500 },
    )
    expect(await stop(BEN)).toBe(404)
    expect(await stop(ADMIN)).toBe(200)
    expect((await live.end()).text).toContain('"code":"call_stopped"')
  })

  test('a call that another node stops before its first word is charged for its prompt', async () => {
    const { upstream, gateways, database } = await setNodes(
      engine,
      2,
      (of) => ({
        rate_limits: { global: { requests: 0 }, critical: { requests: 0 } },
        models: { m: { price: PLAIN_PRICE } },
        channels: [channel('m', of.baseUrl('m'))],
        users: [ROOT, user(2, 'ann', [token('ann')], { access_token: ANN.accessToken })],
      }),
      { program: patientProgram },
    )
    const [here = '', there = ''] = gateways.map(({ url }) => url)
    // 2,000 tokens in any tokenizer.
    const messages = [{ role: 'user', content: 'apple '.repeat(2_000) }]
    for (const stream of [false, true]) {
      upstream.script('m', { kind: 'silence' })
      const before = upstream.received('m').length
      const answer = call(there, { model: 'm', messages, stream }, { key: 'ann' })
      await upstream.receivedAtLeast('m', before + 1)
      const { data } = await manage<Listed>(there, ANN, 'GET /api/running/self')
      const id = data.items[0]?.id ?? ''
      // A node may not know yet that there is another.
      await vi.waitFor(
        async () => expect((await manage(here, ANN, `POST /api/running/${id}/stop`)).status).toBe(200),
        { timeout: 60_000, interval: 500 },
      )
      expect((await answer).status).toBe(503)
      const row = await vi.waitFor(
        async () => {
          const [found] = await database.sql(
            `select reason, input_tokens, output_tokens, quota from usage_log where id = '${id}'`,
          )
          expect(found?.['reason']).toBe('stopped')
          return found as { input_tokens: number; output_tokens: number; quota: number }
        },
        { timeout: 60_000, interval: 100 },
      )
      expect(row.input_tokens).toBeGreaterThanOrEqual(2_000)
      expect(row.output_tokens).toBe(0)
      // 2 USD for a million tokens are 1 quota unit for each.
      expect(row.quota).toBe(row.input_tokens)
    }
  })
})
