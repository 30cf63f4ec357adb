import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { call, type FullResponse } from '../fixtures/client.ts'
import { type Configuration, channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { startGateway } from '../fixtures/gateway.ts'
import type { Received } from '../fixtures/scripted-upstream.ts'
import { type StoringUpstream, storingUpstream } from '../fixtures/stored-responses.ts'

const LANES = ['one', 'two'] as const

let fixture: Fixture
let client: OpenAI
const lanes = new Map<string, StoringUpstream>()
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 2 },
    models: priced(['m', 'lonely', 'chat']),
    channels: [
      ...LANES.map((lane) =>
        channel(lane, upstream.baseUrl(lane), {
          protocol: 'responses',
          models: ['m'],
          keys: [`${lane}-first`, `${lane}-second`],
        }),
      ),
      channel('lonely', upstream.baseUrl('lonely'), { protocol: 'responses' }),
      channel('chat', upstream.baseUrl('chat')),
    ],
    users: [
      ROOT,
      user(2, 'ann', [token('ann')]),
      user(3, 'bob', [token('bob')]),
      user(4, 'eve', [token('eve')], { quota: 2_000 }),
    ],
  }))
  for (const lane of [...LANES, 'lonely']) {
    const upstream = storingUpstream(lane)
    lanes.set(lane, upstream)
    fixture.upstream.decide(lane, (request) => upstream.decision(request))
  }
  client = new OpenAI({ apiKey: 'sk-ann', baseURL: `${fixture.gateway.url}/v1`, maxRetries: 0 })
})
afterAll(() => fixture?.close())

const post = (fields: object, key = 'ann', path = '/v1/responses'): Promise<FullResponse> =>
  fixture.chat(key, { model: 'm', input: 'hi', ...fields }, { path })

const at = (path: string, key = 'ann', method = 'GET'): Promise<FullResponse> =>
  fixture.chat(key, undefined, { path: `/v1/responses/${path}`, method })

/** The id that the gateway issued. */
async function created(fields: object = {}, key = 'ann'): Promise<string> {
  const { id } = JSON.parse((await post(fields, key)).text)
  return String(id)
}

const made = (): number => [...lanes.values()].reduce((sum, lane) => sum + lane.made.length, 0)

describe('ids of native responses', () => {
  test('a whole response of a responses channel gets an id of the gateway, and nothing else in it is changed', async () => {
    const answer = await post({ model: 'lonely' })
    const { id } = JSON.parse(answer.text)
    expect(id).toMatch(/^resp_[\w-]{20,60}$/)
    expect(answer.text).not.toContain('"resp_lonely')
    const upstreamId = lanes.get('lonely')?.made.at(-1)?.id ?? ''
    expect(answer.text).toContain('"x_big":9007199254740993')
    expect(answer.text.replace(`"${id}"`, `"${upstreamId}"`)).toContain(`{"id":"${upstreamId}",  "object"`)
  })

  test("the gateway's response id is the same in all events of a stream, and in the response that is retrieved later", async () => {
    const { text } = await post({ model: 'lonely', stream: true })
    const ids = new Set([...text.matchAll(/"(?:response_)?id":"(resp_[^"]+)"/g)].map(([, id]) => id))
    expect(ids.size).toBe(1)
    const [id = ''] = ids
    expect(text).not.toMatch(/"resp_lonely/)
    expect(text.match(new RegExp(`"${id}"`, 'g'))).toHaveLength(4)
    expect(JSON.parse((await at(id)).text)).toMatchObject({ id, status: 'completed' })
  })

  test("the response id is replaced by the gateway's even if a stream begins with an event of half a megabyte", async () => {
    const instructions = 'x'.repeat(500_000)
    fixture.upstream.script('lonely', {
      kind: 'stream',
      frames: [
        `event: response.created\ndata: {"type":"response.created","sequence_number":0,"response":{"instructions":"${instructions}","id":"resp_late","output":[]}}\n\n`,
        `event: response.completed\ndata: {"type":"response.completed","sequence_number":1,"response":{"id":"resp_late","instructions":"${instructions}","output":[],"status":"completed","usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}}\n\n`,
      ],
      ending: 'no done',
    })
    const { text } = await post({ model: 'lonely', stream: true })
    const upstream = lanes.get('lonely')
    fixture.upstream.decide('lonely', (request) => upstream?.decision(request) ?? { kind: 'silence' })
    expect(text).not.toContain('resp_late')
    expect(text.match(/"id":"resp_[0-9a-f]{44}"/g)).toHaveLength(2)
  })
})

describe('a response that is continued', () => {
  test('a call with previous_response_id goes to the channel that made it; upstream ids are never shown to the client', async () => {
    for (let round = 0; round < 6; round += 1) {
      const id = await created()
      const next = await post({ previous_response_id: id, stream: round % 2 === 1 })
      expect(next.status).toBe(200)
      expect(next.text).toContain(`"previous_response_id":"${id}"`)
      expect(next.text).not.toMatch(/"resp_(?:one|two)/)
    }
  })

  test('input tokens of a call with previous_response_id are counted by the upstream that made the earlier response', async () => {
    for (let round = 0; round < 6; round += 1) {
      const id = await created()
      const counted = await post({ previous_response_id: id }, 'ann', '/v1/responses/input_tokens')
      expect(counted.text).toBe('{"object":"response.input_tokens",  "input_tokens":4711}')
    }
  })

  test("counting tokens with previous_response_id is a 400 for another user's or an unknown id, and where the upstream cannot", async () => {
    const id = await created({ model: 'lonely' })
    const count = (fields: object, key?: string): Promise<FullResponse> =>
      post({ model: 'lonely', ...fields }, key, '/v1/responses/input_tokens')
    const before = fixture.upstream.received('lonely').length
    for (const refused of [
      await count({ previous_response_id: id }, 'bob'),
      await count({ previous_response_id: 'resp_unknown' }),
      await count({ previous_response_id: id, model: 'chat' }),
    ]) {
      expect(refused.status).toBe(400)
      expect(JSON.parse(refused.text).error.code).toBe('previous_response_not_found')
    }
    expect(fixture.upstream.received('lonely')).toHaveLength(before)
    fixture.upstream.script('lonely', { kind: 'status', status: 404, body: '{}' })
    const uncounted = await count({ previous_response_id: id })
    const upstream = lanes.get('lonely')
    fixture.upstream.decide('lonely', (request) => upstream?.decision(request) ?? { kind: 'silence' })
    expect(uncounted.status).toBe(400)
    expect(uncounted.text).toContain(`Invalid 'previous_response_id': expected all items`)
  })

  test("the hold of a call with previous_response_id includes the tokens of the earlier response's context", async () => {
    const id = await created({ model: 'lonely', max_output_tokens: 400 }, 'eve')
    expect(databaseOf(fixture.gateway.dataDir).user('eve').quota).toBe(2_000 - 300)
    // Both requests name a lifetime, since a prompt that is elsewhere may have marks of any.
    const fields = { model: 'lonely', max_output_tokens: 1_000, prompt_cache_options: { ttl: '12h' } }
    const neededFor = async (more: object): Promise<number> => {
      const answer = await post({ ...fields, ...more }, 'eve')
      expect(answer.status).toBe(403)
      return Number(/(\d+) are needed/.exec(answer.text)?.[1])
    }
    const alone = await neededFor({ prompt_cache_key: `${id}____` })
    // The highest rate of a prompt is that of tokens written to a cache, twice the plain one.
    expect(await neededFor({ previous_response_id: id })).toBe(alone + 2 * 150)
  })

  test.each([
    'resp_unknown',
    'x',
    'resp_',
    '',
    'sk-secret-key-that-nobody-may-see',
    `resp_${'a'.repeat(200)}`,
  ])(
    'a call with the invalid previous_response_id %j is refused before anything is sent or charged',
    async (id) => {
      const before = made()
      const answer = await post({ previous_response_id: id })
      expect(answer.status).toBe(400)
      expect(JSON.parse(answer.text).error.code).toBe('previous_response_not_found')
      expect(answer.text).not.toContain('nobody-may-see')
      expect(made()).toBe(before)
    },
  )

  test('a response cannot be continued by another user than the one who made it', async () => {
    const id = await created()
    const answer = await post({ previous_response_id: id }, 'bob')
    expect(answer.status).toBe(400)
    expect(JSON.parse(answer.text).error.code).toBe('previous_response_not_found')
    for (const [path, method] of [
      [id, 'GET'],
      [id, 'DELETE'],
      [`${id}/input_items`, 'GET'],
      [`${id}/cancel`, 'POST'],
    ] as const)
      expect((await at(path, 'bob', method)).status).toBe(404)
    expect((await at(id)).status).toBe(200)
  })

  test('a call that continues a response with a model that its channel does not serve is a 400 that says so', async () => {
    const id = await created({ model: 'lonely' })
    const answer = await post({ previous_response_id: id })
    expect(answer.status).toBe(400)
    expect(JSON.parse(answer.text).error.message).toContain('does not serve this model')
  })

  test("continuing a response that the upstream has deleted is a 400 that names the gateway's id, not the upstream's", async () => {
    const id = await created({ model: 'lonely' })
    lanes.get('lonely')?.made.splice(0)
    const answer = await post({ model: 'lonely', previous_response_id: id })
    expect(answer.status).toBe(400)
    expect(answer.text).toContain(`'${id}'`)
    expect(answer.text).not.toContain('resp_lonely')
  })

  test('a response with store: false cannot be continued', async () => {
    const id = await created({ store: false })
    expect((await at(id)).status).toBe(404)
    expect((await post({ previous_response_id: id })).status).toBe(400)
  })
})

describe('encrypted reasoning', () => {
  test.each([false, true])(
    'encrypted reasoning in a request goes back to the upstream account that made it, stream: %s',
    async (stream) => {
      for (let round = 0; round < 6; round += 1) {
        const before = new Map([...lanes].map(([name, { made: list }]) => [name, list.length]))
        await post({ store: false, stream })
        const [lane, upstream] =
          [...lanes].find(([name, { made: list }]) => list.length > (before.get(name) ?? 0)) ?? []
        const first = upstream?.made.at(-1)
        const input = [
          { type: 'message', role: 'user', content: 'hi' },
          { type: 'reasoning', summary: [], encrypted_content: `sealed for ${lane} ${first?.id}` },
          { type: 'message', role: 'user', content: 'go on' },
        ]
        expect((await post({ input, store: false })).status).toBe(200)
        expect(upstream?.made.at(-1)?.body['input']).toEqual(input)
        expect(upstream?.made.at(-1)?.key).toBe(first?.key)
      }
    },
  )

  test.each([
    ['/v1/responses', { background: true }],
    ['/v1/responses/compact', {}],
    ['/v1/responses/input_tokens', {}],
  ])(
    'encrypted reasoning in a request to %s with %j goes back to the upstream account that made it',
    async (path, fields) => {
      const posts = (): Received[] =>
        LANES.flatMap((lane) => fixture.upstream.received(lane)).filter(({ method }) => method === 'POST')
      for (let round = 0; round < 6; round += 1) {
        const before = new Set(posts())
        const output: { readonly type: string }[] = JSON.parse((await post({})).text).output
        const input = output.filter(({ type }) => type === 'reasoning')
        expect((await post({ input, ...fields }, 'ann', path)).status).toBe(200)
        const added = posts().filter((one) => !before.has(one))
        expect(added).toHaveLength(2)
        expect(added[0]?.headers['authorization']).toBe(added[1]?.headers['authorization'])
      }
    },
  )
})

describe('a compaction', () => {
  test("a compaction of a stored response goes to the account that made it, and is a 400 for another user's response", async () => {
    for (let round = 0; round < 4; round += 1) {
      const id = await created()
      const before = fixture.upstream.received('one').length + fixture.upstream.received('two').length
      const answer = await fixture.chat(
        'ann',
        { model: 'm', input: 'hi', previous_response_id: id },
        { path: '/v1/responses/compact' },
      )
      expect(answer.status).toBe(200)
      expect(fixture.upstream.received('one').length + fixture.upstream.received('two').length).toBe(
        before + 1,
      )
    }
    const other = { model: 'm', input: 'hi', previous_response_id: await created({}, 'bob') }
    expect((await fixture.chat('ann', other, { path: '/v1/responses/compact' })).status).toBe(400)
  })
})

describe('the official client', () => {
  test('the OpenAI client continues, retrieves, lists the input of, and deletes a response', async () => {
    const first = await client.responses.create({ model: 'm', input: 'hi' })
    const next = await client.responses.create({ model: 'm', input: 'go on', previous_response_id: first.id })
    expect(next.previous_response_id).toBe(first.id)
    const again = await client.responses.retrieve(next.id)
    expect(again).toMatchObject({ id: next.id, previous_response_id: first.id, status: 'completed' })
    const items = await client.responses.inputItems.list(next.id, { limit: 5, order: 'asc' })
    expect(items.data).toMatchObject([{ id: 'msg_1', asked: 'limit=5&order=asc' }])
    await client.responses.delete(next.id)
    await expect(client.responses.retrieve(next.id)).rejects.toMatchObject({ status: 404 })
    await expect(
      client.responses.create({ model: 'm', input: 'go on', previous_response_id: next.id }),
    ).rejects.toMatchObject({ status: 400, code: 'previous_response_not_found' })
  })

  test('the OpenAI client retries a call with previous_response_id after a 500, and the call is charged once', async () => {
    const first = await client.responses.create({ model: 'lonely', input: 'hi' })
    const provider = lanes.get('lonely')
    let calls = 0
    fixture.upstream.decide('lonely', (request) => {
      calls += 1
      return calls === 1 || !provider ? { kind: 'status', status: 500 } : provider.decision(request)
    })
    const before = databaseOf(fixture.gateway.dataDir).usage().length
    const next = await client.responses.create(
      { model: 'lonely', input: 'go on', previous_response_id: first.id },
      { maxRetries: 2 },
    )
    expect(next.previous_response_id).toBe(first.id)
    const charges = databaseOf(fixture.gateway.dataDir)
      .usage()
      .slice(before)
      .map(({ quota }) => quota)
    expect(charges.toSorted((a, b) => a - b)).toEqual([0, 300])
  })

  test('the OpenAI client reads the stream of a response again, which costs nothing', async () => {
    const { id } = await client.responses.create({ model: 'm', input: 'hi' })
    const before = databaseOf(fixture.gateway.dataDir).usage().length
    const stream = await client.responses.retrieve(id, { stream: true, starting_after: 0 })
    const ids: string[] = []
    for await (const event of stream) if ('response' in event) ids.push(event.response.id)
    expect(new Set(ids)).toEqual(new Set([id]))
    expect(databaseOf(fixture.gateway.dataDir).usage()).toHaveLength(before)
  })
})

describe('stored responses after a change of the configuration', () => {
  const configured = (channels: readonly Record<string, unknown>[]): Configuration => ({
    models: priced(['m']),
    channels,
    users: [ROOT, user(2, 'ann', [token('ann')])],
  })

  test('a stored response can be used with a new key of its channel, and is a 404 that says so when the channel is gone', async () => {
    const provider = storingUpstream('moved')
    // All keys belong to one organisation and reach what it stores.
    fixture.upstream.decide('moved', (request) =>
      provider.decision({ ...request, headers: { ...request.headers, authorization: 'one organisation' } }),
    )
    const native = (name: string, key: string): Record<string, unknown> =>
      channel(name, fixture.upstream.baseUrl('moved'), { protocol: 'responses', models: ['m'], keys: [key] })
    const gateway = await startGateway({ config: configured([native('a', 'old-key')]) })
    try {
      const asked = { key: 'ann', path: '/v1/responses' }
      const first = await call(gateway.url, { model: 'm', input: 'hi' }, asked)
      const { id } = JSON.parse(first.text)
      const next = { model: 'm', input: 'on', previous_response_id: id }
      const get = { key: 'ann', method: 'GET', path: `/v1/responses/${id}` }
      await gateway.apply(configured([native('a', 'new-key')]))
      expect((await call(gateway.url, next, asked)).status).toBe(200)
      expect((await call(gateway.url, undefined, get)).status).toBe(200)
      await gateway.apply(configured([native('b', 'old-key')]))
      const refused = await call(gateway.url, next, asked)
      expect(refused.status).toBe(400)
      expect(JSON.parse(refused.text).error).toMatchObject({ code: 'previous_response_not_found' })
      const gone = await call(gateway.url, undefined, get)
      expect(gone.status).toBe(404)
      expect(gone.text).toContain('is not configured any more')
    } finally {
      await gateway.discard()
    }
  })
})
