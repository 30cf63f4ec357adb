import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { call, type FullResponse } from '../fixtures/client.ts'
import { channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf, type GatewayDatabase } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { json } from '../fixtures/media-fixture.ts'

const MOST_INPUTS = 2048
/** USD per million tokens: 0.065 quota units a token. */
const PRICE = { input: 0.13, output: 0 }
const QUOTA = 1_000_000

let fixture: Fixture
let database: GatewayDatabase
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: { m: { price: PRICE }, gemini: { price: PRICE } },
    channels: [
      channel('m', upstream.baseUrl('m')),
      channel('gemini', upstream.baseUrl('gemini'), { protocol: 'gemini' }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann', { remain_quota: QUOTA })], { quota: QUOTA })],
  }))
  database = databaseOf(fixture.gateway.dataDir)
})
afterAll(() => fixture?.close())

const inputs = <Input>(input: (index: number) => Input, count = MOST_INPUTS): Input[] =>
  Array.from({ length: count }, (_, index) => input(index))

const vectors = (usage: object | undefined) =>
  json({
    object: 'list',
    data: inputs((index) => ({ object: 'embedding', index, embedding: [index, -0.5] })),
    model: 'm',
    ...(usage && { usage }),
  })

const embed = (body: string, path = '/v1/embeddings'): Promise<FullResponse> =>
  call(fixture.gateway.url, body, { key: 'ann', path })

const balances = () => {
  const { remain_quota: ofToken, used_quota: used } = database.token('token-ann')
  return { ofToken, used, ofUser: database.user('ann').quota }
}

/** Makes a call, and checks that token, user and usage log have this charge. */
async function charged(quota: number, ask: () => Promise<FullResponse>): Promise<FullResponse> {
  const before = balances()
  const answer = await ask()
  expect(answer.status, answer.text.slice(0, 300)).toBe(200)
  expect(database.usageOf(String(answer.headers['x-request-id']))).toMatchObject({ quota })
  expect(balances()).toEqual({
    ofToken: before.ofToken - quota,
    used: before.used + quota,
    ofUser: before.ofUser - quota,
  })
  return answer
}

describe('a request of 2,048 inputs', () => {
  test.each([
    ['texts', inputs((index) => `text ${index}, é "quoted"`)],
    ['lists of token ids', inputs((index) => [index, index + 1])],
  ])(
    'an embeddings request of 2,048 %s is forwarded byte for byte, and charged exactly its reported usage',
    async (_, input) => {
      const usage = { prompt_tokens: 123_457, total_tokens: 123_457 }
      const behaviour = vectors(usage)
      fixture.upstream.script('m', behaviour)
      const body = JSON.stringify({ model: 'm', input })
      // 123,457 × 0.065 = 8,024.7
      const { text } = await charged(8025, () => embed(body))
      expect(text).toBe(behaviour.body)
      expect(fixture.upstream.only('m').text).toBe(body)
    },
  )

  test('an embeddings request of 2,048 inputs is charged by the tokens that the gateway counts if no usage is reported', async () => {
    fixture.upstream.script('m', vectors(undefined))
    const body = JSON.stringify({ model: 'm', input: inputs(() => [1, 2, 3, 4, 5]) })
    // 10,240 × 0.065 = 665.6
    await charged(666, () => embed(body))
  })

  test('an embeddings request of 2,048 inputs gets its vectors in the encoding_format that it requests', async () => {
    fixture.upstream.script('m', vectors({ prompt_tokens: 2000, total_tokens: 2000 }))
    const body = JSON.stringify({ model: 'm', input: inputs(() => 'a'), encoding_format: 'base64' })
    const { text } = await charged(130, () => embed(body))
    const { data } = JSON.parse(text) as { data: { index: number; embedding: string }[] }
    expect(data).toEqual(
      inputs((index) => ({
        object: 'embedding',
        index,
        embedding: Buffer.from(new Float32Array([index, -0.5]).buffer).toString('base64'),
      })),
    )
  })

  test('an embeddings request of 2,048 inputs is split into batches of 100 for Gemini, which are charged together', async () => {
    fixture.upstream.decide('gemini', ({ text }) => {
      const { requests } = JSON.parse(text) as { requests: unknown[] }
      return json({
        embeddings: requests.map(() => ({ values: [1] })),
        usageMetadata: { promptTokenCount: 10 * requests.length },
      })
    })
    const body = JSON.stringify({ model: 'gemini', input: inputs(() => 'a') })
    // 20,480 × 0.065 = 1,331.2
    const { text } = await charged(1331, () => embed(body))
    expect((JSON.parse(text) as { data: unknown[] }).data).toHaveLength(MOST_INPUTS)
    expect(fixture.upstream.received('gemini')).toHaveLength(21)
  })

  test('an embeddings request of 2,048 inputs from a client of the Gemini API gets 2,048 vectors, and is charged', async () => {
    fixture.upstream.script('m', vectors({ prompt_tokens: 2000, total_tokens: 2000 }))
    const requests = inputs((index) => ({ content: { parts: [{ text: `text ${index}` }] } }))
    const path = '/v1beta/models/m:batchEmbedContents'
    const { text } = await charged(130, () => embed(JSON.stringify({ requests }), path))
    expect((JSON.parse(text) as { embeddings: unknown[] }).embeddings).toHaveLength(MOST_INPUTS)
  })
})

test.each([
  ['chat', '/v1/embeddings', { model: 'm', input: inputs(() => 'a', MOST_INPUTS + 1) }],
  [
    'Gemini',
    '/v1beta/models/m:batchEmbedContents',
    { requests: inputs(() => ({ content: { parts: [{ text: 'a' }] } }), MOST_INPUTS + 1) },
  ],
])(
  'an embeddings request of 2,049 inputs is a 400 before anything is charged: a client of %s',
  async (_, path, body) => {
    const before = balances()
    const { status, text } = await embed(JSON.stringify(body), path)
    expect([status, text]).toEqual([400, expect.stringContaining('at most 2048')])
    expect(balances()).toEqual(before)
  },
)
