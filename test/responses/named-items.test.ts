import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { CERTAINLY_GONE_MS, type FullResponse } from '../fixtures/client.ts'
import { channel, PLAIN_PRICE, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { frames, responsesUsage, streamedResponse, wholeResponse } from '../fixtures/responses-behaviour.ts'

/** Quota units of a prompt token that is written to a cache for an hour, the most expensive kind. */
const DEAREST = 2
/** Assumed context in tokens of a model without price data. */
const ASSUMED = 200_000
/** An upper bound of what the tests append, and of the output. */
const ROOM = 2_000

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    models: { m: { price: PLAIN_PRICE }, two: { price: PLAIN_PRICE }, left: { price: PLAIN_PRICE } },
    channels: [
      channel('m', upstream.baseUrl('m'), { protocol: 'responses', models: ['m', 'left'] }),
      ...['one', 'other'].map((name) =>
        channel(name, upstream.baseUrl(name), { protocol: 'responses', models: ['two'] }),
      ),
    ],
    users: [
      ROOT,
      user(2, 'ann', [token('cent', { remain_quota: 500 }), token('rich')]),
      user(3, 'bob', [token('bobs', { remain_quota: 500 })]),
    ],
  }))
})
afterAll(() => fixture?.close())

const post = (fields: object, key = 'rich'): Promise<FullResponse> =>
  fixture.chat(key, { model: 'm', input: 'hi', ...fields }, { path: '/v1/responses' })
const call = (id: string) => ({ calls: [{ id, name: 'f', input: '{}' }] })
const reference = (id: string): object => ({ type: 'item_reference', id: `fc_${id}` })

/** Makes a response with one call that used these tokens, and returns its id. */
async function made(id: string, input: number, output: number, fields: object = {}): Promise<string> {
  const content = { ...call(id), usage: responsesUsage(input, output) }
  const isStream = 'stream' in fields
  fixture.upstream.script('m', isStream ? streamedResponse(content) : wholeResponse(content))
  const { status, text } = await post(fields)
  expect(status, text).toBe(200)
  return /resp_\w+/.exec(text)?.[0] ?? ''
}

/** Quota units that a call with an empty key would have needed. */
async function neededFor(fields: object, key = 'cent'): Promise<number> {
  const { status, text } = await post({ max_output_tokens: 16, ...fields }, key)
  expect(status, text).toBe(403)
  return Number(/(\d+) are needed/.exec(text)?.[1])
}

async function expectBound(tokens: number, fields: object, key?: string): Promise<void> {
  const needed = await neededFor(fields, key)
  expect(needed).toBeGreaterThanOrEqual(DEAREST * tokens)
  expect(needed).toBeLessThan(DEAREST * (tokens + ROOM))
}

describe('an item of a response that went through this gateway', () => {
  test.each([
    ['whole', {}],
    ['streamed', { stream: true }],
  ])(
    "a call that refers to a stored item holds the reported tokens of the item's response: %s",
    async (how, fields) => {
      await made(how, 3_000, 1_000, fields)
      await expectBound(4_000, { input: [reference(how)] })
      await expectBound(4_000, { input: [{ id: `fc_${how}` }, { role: 'user', content: 'and' }] })
    },
  )

  test('the hold of a call that refers to stored items counts the tokens of each response that they belong to once', async () => {
    await made('first', 3_000, 1_000)
    await made('second', 6_000, 500)
    await expectBound(4_000, { input: [reference('first'), reference('first')] })
    await expectBound(10_500, { input: [reference('first'), reference('second')] })
  })

  test("the hold of a call that continues a stored response and refers to an item of it counts the response's tokens once", async () => {
    const previous = await made('previous', 3_000, 1_000)
    await expectBound(4_000, { input: [reference('previous')], previous_response_id: previous })
  })

  test('the hold of a call that refers to many stored items covers at most the largest prompt that is possible', async () => {
    await made('large', 150_000, 10_000)
    await made('larger', 170_000, 10_000)
    await made('largest', 299_000, 1_000)
    await expectBound(ASSUMED, { input: [reference('large'), reference('larger')] })
    await expectBound(300_000, { input: [reference('large'), reference('largest')] })
  })

  test.each([
    ['beside one that is unknown', { input: [reference('known'), reference('unheard')] }, ASSUMED + 4_000],
    ['of another user', { input: [reference('known')] }, ASSUMED, 'bobs'],
  ])(
    'a call that refers to a stored item holds the amount for an unknown size %s',
    async (_, fields, tokens, key?: string) => {
      await made('known', 3_000, 1_000)
      await expectBound(tokens, fields, key)
    },
  )

  test('a call that refers to an item of a deleted response holds the amount for a prompt of unknown size', async () => {
    const id = await made('deleted', 3_000, 1_000)
    fixture.upstream.script('m', { kind: 'whole', body: '{"id":"resp_upstream","deleted":true}' })
    const { status } = await fixture.chat('rich', '', { path: `/v1/responses/${id}`, method: 'DELETE' })
    expect(status).toBe(200)
    await expectBound(ASSUMED, { input: [reference('deleted')] })
  })

  test('a call that refers to a stored item goes to the channel that made the item', async () => {
    for (const lane of ['one', 'other'])
      fixture.upstream.script(lane, wholeResponse({ ...call(`of-${lane}`), usage: responsesUsage(9, 1) }))
    const before = new Set<string>()
    while (before.size < 2) {
      const { text } = await post({ model: 'two' })
      before.add(/fc_of-(\w+)/.exec(text)?.[1] ?? '')
    }
    for (const lane of ['one', 'other'])
      for (let time = 0; time < 6; time++) {
        const { text } = await post({ model: 'two', input: [reference(`of-${lane}`)] })
        expect(text).toContain(`fc_of-${lane}`)
      }
  })
})

describe('a response of unknown size that is continued or has items that are named', () => {
  const continued = async (id: string, item: string): Promise<void> => {
    await expectBound(ASSUMED, { previous_response_id: id })
    await expectBound(ASSUMED, { input: [reference(item)] })
  }
  test('a call that continues a response without reported tokens holds the amount for a prompt of unknown size', async () => {
    fixture.upstream.script('m', wholeResponse({ ...call('silent'), usage: 'null' }))
    const id = JSON.parse((await post({})).text).id
    await continued(id, 'silent')
  })
  test('a call that continues a response whose client left before the usage arrived holds the amount for a prompt of unknown size', async () => {
    const database = databaseOf(fixture.gateway.dataDir)
    const begun = frames({ text: 'Once upon', ...call('gone') }).slice(0, -1)
    fixture.upstream.script('m', { kind: 'stream', frames: begun, ending: 'stall' })
    const live = await fixture.live(
      'rich',
      { model: 'm', input: 'hi', stream: true },
      { path: '/v1/responses' },
    )
    await live.until('fc_gone')
    const id = /resp_\w+/.exec(live.text())?.[0] ?? ''
    await sleep(CERTAINLY_GONE_MS)
    live.abort()
    const callId = String(live.headers['x-request-id'])
    await vi.waitFor(() => expect(database.usageOf(callId)?.reason).toBe('client_gone'), 60_000)
    await continued(id, 'gone')
  })
  test('a call that continues a background response holds the amount for a prompt of unknown size', async () => {
    const queued = '{"id":"resp_upstream","object":"response","status":"queued","output":[],"usage":null}'
    fixture.upstream.script('m', { kind: 'whole', body: queued })
    const { id } = JSON.parse((await post({ background: true })).text)
    await expectBound(ASSUMED, { previous_response_id: id })
    fixture.upstream.script('m', wholeResponse({ text: 'done', usage: responsesUsage(3_000, 1_000) }))
    await fixture.chat('rich', '', { path: `/v1/responses/${id}`, method: 'GET' })
    await expectBound(ASSUMED, { previous_response_id: id })
  })
})

describe('the charge of a stream with named items that its client left', () => {
  const left = async (fields: object) => {
    const database = databaseOf(fixture.gateway.dataDir)
    const begun = frames({ text: 'Once upon' }).slice(0, 6)
    fixture.upstream.script('m', { kind: 'stream', frames: begun, ending: 'stall' })
    const body = { model: 'left', input: 'hi', stream: true, ...fields }
    const live = await fixture.live('rich', body, { path: '/v1/responses' })
    await live.until('upon')
    await sleep(CERTAINLY_GONE_MS)
    live.abort()
    const id = String(live.headers['x-request-id'])
    await vi.waitFor(() => expect(database.usageOf(id)?.reason).toBe('client_gone'), 60_000)
    return database.usageOf(id)
  }
  test.each<[string, number, object]>([
    ['the context of its model for a conversation of which nothing is known', ASSUMED, { conversation: 'c' }],
    ['the same for an item of which nothing is known', ASSUMED, { input: [reference('unheard')] }],
    ['the reported tokens of the response of an item', 4_000, { input: [reference('charged')] }],
  ])('a stream with item references that its client left is charged: %s', async (_, tokens, fields) => {
    await made('charged', 3_000, 1_000)
    const row = await left(fields)
    expect(row?.input_tokens).toBeGreaterThanOrEqual(tokens)
    expect(row?.input_tokens).toBeLessThan(tokens + 100)
    expect(row?.quota).toBe((row?.input_tokens ?? 0) + 4 * (row?.output_tokens ?? 0))
  })
})
