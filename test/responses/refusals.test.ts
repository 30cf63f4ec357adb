import OpenAI, { AuthenticationError, BadRequestError } from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { call, type FullResponse } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'

const PROTOCOLS = ['responses', 'chat', 'messages'] as const
const CONVERTED = ['chat', 'messages'] as const

let fixture: Fixture
let client: OpenAI
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0, websocket: { enabled: false } },
    models: priced(PROTOCOLS),
    channels: PROTOCOLS.map((protocol) => channel(protocol, upstream.baseUrl(protocol), { protocol })),
    users: [ROOT, user(2, 'ann', [token('ann'), token('poor', { remain_quota: 1_000 })])],
  }))
  client = clientWith('sk-ann')
})
afterAll(() => fixture?.close())

const clientWith = (apiKey: string): OpenAI =>
  new OpenAI({ apiKey, baseURL: `${fixture.gateway.url}/v1`, maxRetries: 0 })

const PATH = { path: '/v1/responses' }
const post = (model: string, fields: object = {}, key = 'ann'): Promise<FullResponse> =>
  fixture.chat(key, { model, input: 'hi', ...fields }, PATH)

describe('refused responses requests', () => {
  test.each(PROTOCOLS)(
    'continuing a response that is not stored is refused, with a channel that speaks %s',
    async (model) => {
      fixture.upstream.script(model, { kind: 'silence' })
      const answer = await post(model, { previous_response_id: 'resp_1' })
      expect(answer.status).toBe(400)
      expect(answer.json().error).toMatchObject({
        type: 'invalid_request_error',
        code: 'previous_response_not_found',
      })
      expect(answer.json().error.message).toContain('options.keep_responses is 0')
      expect(fixture.upstream.received(model)).toHaveLength(0)
    },
  )

  test.each(CONVERTED)('a background response is refused, with a channel that speaks %s', async (model) => {
    fixture.upstream.script(model, { kind: 'silence' })
    const answer = await post(model, { background: true })
    expect(answer.status).toBe(400)
    expect(answer.json().error.message).toContain(`Invalid 'background': expected false`)
    expect(fixture.upstream.received(model)).toHaveLength(0)
  })

  test("a responses request with an empty input, an unknown key or too little quota is refused with OpenAI's errors", async () => {
    const create = (by: OpenAI, fields: object): Promise<unknown> =>
      by.responses.create({ model: 'responses', input: 'hi', ...fields }).then(() => 'created')
    await expect(create(client, { input: [] })).rejects.toBeInstanceOf(BadRequestError)
    await expect(create(clientWith('sk-nobody'), {})).rejects.toBeInstanceOf(AuthenticationError)
    const answer = await post('responses', { max_output_tokens: 100_000 }, 'poor')
    expect(answer.status).toBe(403)
    expect(answer.json().error.code).toBe('insufficient_quota')
  })

  test('with websocket.enabled: false, a WebSocket is refused with 426, so that a client sends its requests by POST', async () => {
    const asked = { ...PATH, method: 'GET', key: 'ann' }
    const headers = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' }
    const answer = await call(fixture.gateway.url, undefined, { ...asked, headers })
    expect(answer.status).toBe(426)
    expect(answer.json().error.code).toBe('upgrade_required')
    expect(answer.headers['upgrade']).toBe('HTTP/1.1')
    expect(answer.headers['connection']).toContain('upgrade')
    expect((await call(fixture.gateway.url, undefined, asked)).status).toBe(405)
  })
})
