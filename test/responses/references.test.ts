import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { wholeChat } from '../fixtures/chat-behaviour.ts'
import type { FullResponse } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { wholeMessage } from '../fixtures/messages-behaviour.ts'
import { wholeResponse } from '../fixtures/responses-behaviour.ts'

const PATHS = {
  create: '/v1/responses',
  compact: '/v1/responses/compact',
  count: '/v1/responses/input_tokens',
} as const
type Path = keyof typeof PATHS
const NATIVE_ANSWERS = {
  create: wholeResponse({ text: 'said' }),
  compact: { kind: 'whole', body: '{"id":"resp_c","object":"response.compaction","output":[]}' },
  count: { kind: 'whole', body: '{"object":"response.input_tokens","input_tokens":4711}' },
} as const
const UNSERVED = { kind: 'status', status: 404, body: '{}' } as const
const THOUGHT = wholeMessage([{ thinking: 'deep', signature: 'abc' }, { text: 'whale' }])
/** An id in the form that the gateway gives to items; it belongs to no response. */
const UNKNOWN = `msg_${'0'.repeat(32)}000`

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { keep_responses: '1h', retries: 0 },
    models: priced(['chat', 'messages', 'native']),
    channels: [
      channel('chat', upstream.baseUrl('chat')),
      channel('messages', upstream.baseUrl('messages'), { protocol: 'messages' }),
      channel('native', upstream.baseUrl('native'), { protocol: 'responses' }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')]), user(3, 'bob', [token('bob')])],
  }))
})
afterAll(() => fixture?.close())

const post = (path: Path, fields: object, key = 'ann'): Promise<FullResponse> =>
  fixture.chat(key, { input: 'hi', ...fields }, { path: PATHS[path] })
const reference = (id: string): object => ({ type: 'item_reference', id })
const hi = { role: 'user', content: 'hi' }

/** A response that the gateway keeps, and its items' ids by type. */
async function kept(model: 'chat' | 'messages'): Promise<{ id: string; items: Record<string, string> }> {
  fixture.upstream.script('chat', wholeChat({ text: 'whale '.repeat(1_000) }))
  fixture.upstream.script('messages', THOUGHT)
  const { id, output } = JSON.parse((await post('create', { model })).text)
  const items = output.map((item: { type: string; id: string }) => [item.type, item.id])
  return { id, items: Object.fromEntries(items) }
}

/** The input of a request as a channel of this protocol receives it. */
async function inputAt(path: Path, input: readonly object[], key = 'ann'): Promise<unknown> {
  fixture.upstream.script('native', NATIVE_ANSWERS[path])
  expect((await post(path, { model: 'native', input }, key)).status).toBe(200)
  return JSON.parse(fixture.upstream.received('native').at(-1)?.text ?? '{}').input
}

describe('a reference to an item of a response that the gateway keeps', () => {
  test('an item reference counts as many tokens as its item where the gateway counts', async () => {
    const { items } = await kept('chat')
    const count = async (...input: object[]): Promise<number> =>
      JSON.parse((await post('count', { model: 'chat', input: [hi, ...input] })).text).input_tokens
    const alone = await count()
    expect((await count(reference(items['message'] ?? ''))) - alone).toBeGreaterThan(1_000)
    expect((await count(reference(UNKNOWN))) - alone).toBeLessThan(100)
  })

  test('an item reference may omit its type', async () => {
    const { items } = await kept('chat')
    const answer = await post('create', { model: 'chat', input: [hi, { id: items['message'] }] })
    expect(answer.headers['x-gateway-dropped']).toBeUndefined()
    expect(JSON.parse(fixture.upstream.received('chat').at(-1)?.text ?? '{}').messages).toMatchObject([
      hi,
      { role: 'assistant', content: expect.stringContaining('whale') },
    ])
  })

  test.each(['create', 'compact', 'count'] as const)(
    'a reference to a kept item is sent to a provider of responses as the item, and an unknown reference unchanged (request: %s)',
    async (path) => {
      const { items } = await kept('chat')
      const id = items['message'] ?? ''
      const others = [reference('msg_1'), reference(UNKNOWN)]
      expect(await inputAt(path, [hi, reference(id), ...others])).toMatchObject([
        hi,
        { type: 'message', role: 'assistant', content: [{ type: 'output_text' }] },
        ...others,
      ])
      expect(await inputAt(path, [hi, reference(id)], 'bob')).toEqual([hi, reference(id)])
    },
  )

  test.each(['create', 'compact', 'count'] as const)(
    "an item reference to another dialect's thoughts is not sent to a provider of responses (request: %s)",
    async (path) => {
      const { items } = await kept('messages')
      expect(Object.keys(items)).toEqual(['reasoning', 'message'])
      const references = Object.values(items).map(reference)
      expect(await inputAt(path, [hi, ...references])).toMatchObject([hi, { type: 'message' }])
    },
  )
})

test.each(['create', 'compact', 'count'] as const)(
  "another dialect's thoughts that a client sends back are not sent to a provider of responses (request: %s)",
  async (path) => {
    fixture.upstream.script('messages', THOUGHT)
    const { output } = JSON.parse((await post('create', { model: 'messages', store: false })).text)
    const own = { type: 'reasoning', summary: [], encrypted_content: 'gAAAA' }
    const input = [hi, { ...output[0], id: undefined }, output[1], own, hi]
    const { id: _, ...message } = output[1]
    expect(await inputAt(path, input)).toEqual([hi, message, own, hi])
    const answer = await post(path, { model: 'native', input })
    expect(answer.headers['x-gateway-dropped']).toBe('input.reasoning')
  },
)

test('counting the tokens of a request is refused if it refers to an item that only the provider has', async () => {
  fixture.upstream.script('native', UNSERVED)
  const answer = await post('count', { model: 'native', input: [hi, reference('msg_1')] })
  expect(answer.status).toBe(400)
  expect(answer.json().error.message).toContain(`Invalid 'input': expected all items`)
})

test.each([404, 503])(
  'the gateway counts the tokens of what it keeps where the upstream answers %i, and of nothing that only the provider may have',
  async (status) => {
    const { items } = await kept('chat')
    fixture.upstream.script('native', { kind: 'status', status, body: '{}' })
    const message = reference(items['message'] ?? '')
    const answer = await post('count', { model: 'native', input: [hi, message] })
    expect(answer.status, answer.text).toBe(200)
    expect(JSON.parse(answer.text).input_tokens).toBeGreaterThan(1_000)
    const { status: refused } = await post('count', { model: 'native', input: [message, reference('msg_1')] })
    expect(refused).toBe(status === 404 ? 400 : status)
  },
)

test('a kept response cannot be compacted by a provider that does not have it', async () => {
  const { id } = await kept('chat')
  const before = fixture.upstream.received('native').length
  const answer = await post('compact', { model: 'native', previous_response_id: id })
  expect(answer.status).toBe(400)
  expect(answer.json().error).toMatchObject({ code: 'previous_response_not_found' })
  expect(answer.json().error.message).toContain('is kept by the gateway')
  expect(fixture.upstream.received('native')).toHaveLength(before)
})
