import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { wholeGemini } from '../fixtures/gemini-behaviour.ts'
import { wholeResponse } from '../fixtures/responses-behaviour.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }

type Fields = Record<string, unknown>

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: {},
    models: priced(['m', 'd']),
    channels: [channel('declared', upstream.baseUrl('declared'), { models: ['d'], protocol: ['responses'] })],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())

const as = <Data = Fields>(request: Parameters<typeof manage>[2], body?: object) =>
  manage<Data>(fixture.gateway.url, ROOT_ACCOUNT, request, body)

const fields = (name: string, of: Fields = {}): Fields => ({
  name,
  key: 'k',
  base_url: fixture.upstream.baseUrl(name).replace(/\/v1$/, ''),
  models: 'm',
  ...of,
})

async function made(name: string, of: Fields): Promise<number> {
  const { status, message, data } = await as<{ ids: number[] }>('POST /api/channel/', fields(name, of))
  expect([status, message]).toEqual([200, ''])
  return data.ids[0] ?? 0
}
const protocolOf = async (id: number): Promise<unknown> =>
  (await as(`GET /api/channel/${id}`)).data['protocol']
const remove = (id: number) => as(`DELETE /api/channel/${id}`)

describe('the protocol of a channel', () => {
  test('a channel speaks the protocol of its type, unless it names one protocol or a list itself', async () => {
    for (const [own, shown] of [
      [{ type: 1 }, ['chat']],
      [{ type: 14 }, ['messages']],
      [{ type: 24 }, ['gemini']],
      [{ type: 1, protocol: ['chat', 'responses'] }, ['chat', 'responses']],
      [{ type: 0, protocol: 'responses' }, ['responses']],
    ] as const) {
      const id = await made('own', own)
      expect(await protocolOf(id)).toEqual(shown)
      expect((await as(`GET /api/channel/${id}`)).data['type']).toBe(own.type)
      await remove(id)
    }
  })

  test('a channel of type 24 is called as the Gemini API', async () => {
    const base_url = fixture.upstream.baseUrl('google').replace(/\/v1$/, '')
    const id = await made('google', { type: 24, base_url })
    fixture.upstream.script('google', wholeGemini({ text: 'said' }))
    expect(
      (await fixture.chat('ann', { model: 'm', messages: [{ role: 'user', content: 'hi' }] })).status,
    ).toBe(200)
    expect(fixture.upstream.only('google').path).toBe('/v1beta/models/m:generateContent')
    await remove(id)
  })

  test('calls and tests of a channel use the protocol that the channel names', async () => {
    const id = await made('spoken', { type: 0, protocol: ['responses', 'chat'] })
    fixture.upstream.script('spoken', wholeResponse({ text: 'said' }))
    expect((await fixture.chat('ann', { model: 'm', input: 'hi' }, { path: '/v1/responses' })).status).toBe(
      200,
    )
    expect(fixture.upstream.only('spoken').path).toBe('/v1/responses')
    fixture.upstream.forget('spoken')
    expect(await as(`GET /api/channel/test/${id}`)).toMatchObject({ status: 200, success: true })
    expect(fixture.upstream.only('spoken').path).toBe('/v1/responses')
    await remove(id)
  })

  test('the protocol of a channel stays while other fields change, and follows a new type unless both are sent', async () => {
    const id = await made('changed', { type: 1, protocol: ['chat', 'responses'] })
    await as('PUT /api/channel/', { id, priority: 3 })
    expect(await protocolOf(id)).toEqual(['chat', 'responses'])
    const { data: shown } = await as(`GET /api/channel/${id}`)
    await as('PUT /api/channel/', { ...shown, type: 14 })
    expect(await protocolOf(id)).toEqual(['messages'])
    await as('PUT /api/channel/', { id, type: 8, protocol: ['chat', 'messages'] })
    expect(await protocolOf(id)).toEqual(['chat', 'messages'])
    await remove(id)
  })

  test.each([
    [{ type: 0 }, 'protocol: expected what the upstream of a channel of type 0 speaks'],
    [
      { type: 1, protocol: 'chats' },
      'protocol: expected one of chat, messages, responses, gemini, converse, rerank (chat?)',
    ],
    [{ type: 1, protocol: ['chat', 'chat'] }, 'protocol[1]: expected each entry once'],
    [{ type: 1, protocol: 5 }, 'protocol: expected a protocol or a list of them'],
  ])('an invalid protocol of a channel is a 400 that says what is expected: %j', async (own, message) => {
    const answer = await as('POST /api/channel/', fields('refused', own))
    expect(answer.status).toBe(400)
    expect(answer.message).toContain(message)
  })

  test('a channel of gateway.yaml is listed with its protocol, and with type 0 if no type number has that protocol', async () => {
    const { data } = await as<{ items: Fields[] }>('GET /api/channel/?type=0')
    expect(data.items).toMatchObject([{ name: 'declared', type: 0, protocol: ['responses'] }])
  })
})
