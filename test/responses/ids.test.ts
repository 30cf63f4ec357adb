import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type FullResponse, open } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { storingUpstream } from '../fixtures/stored-responses.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    models: priced(['stored', 'odd']),
    channels: ['stored', 'odd'].map((name) =>
      channel(name, upstream.baseUrl(name), { protocol: 'responses' }),
    ),
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
  const stored = storingUpstream('stored')
  fixture.upstream.decide('stored', (request) => stored.decision(request))
})
afterAll(() => fixture?.close())

const post = (fields: object): Promise<FullResponse> =>
  fixture.chat('ann', { model: 'odd', input: 'hi', ...fields }, { path: '/v1/responses' })
const at = (path: string, method = 'GET'): Promise<FullResponse> =>
  fixture.chat('ann', undefined, { path: `/v1/responses/${path}`, method })

test("the previous_response_id of a response whose previous response was deleted is the gateway's id, not the upstream's", async () => {
  const first = (await post({ model: 'stored' })).json().id
  const next = (await post({ model: 'stored', previous_response_id: first })).json().id
  expect((await at(first, 'DELETE')).status).toBe(200)
  for (const path of [next, `${next}?stream=true`]) {
    const { text } = await at(path)
    expect(text).toContain(`"previous_response_id":"${first}"`)
    expect(text).not.toContain('"resp_stored')
  }
})

test("an upstream's response id is sent to it as one path segment, whatever characters it has", async () => {
  const body = '{"id":"resp_a/../b?c=1","object":"response","status":"completed","output":[]}'
  fixture.upstream.script('odd', { kind: 'whole', body })
  const { id } = (await post({})).json()
  for (const path of [id, `${id}?stream=true`]) {
    await at(path)
    expect(fixture.upstream.received('odd').at(-1)?.path).toMatch(
      /^\/v1\/responses\/resp_a%2F\.\.%2Fb%3Fc%3D1(?:\?stream=true)?$/,
    )
  }
})

test('the id of a response is found in an event of any size, at any position in it', async () => {
  const long = 'long '.repeat(300_000)
  const response = `{"object":"response","instructions":"${long}","id":"resp_late","user":"${long}","output":[]}`
  const [begun, ended] = ['created', 'completed'].map(
    (type, index) =>
      `event: response.${type}\ndata: {"type":"response.${type}","sequence_number":${index},"response":${response}}\n\n`,
  ) as [string, string]
  fixture.upstream.script('odd', { kind: 'stream', frames: [begun, ended], ending: 'no done' })
  const { text } = await post({ stream: true })
  expect(text).not.toContain('resp_late')
  const [id, ...others] = new Set(text.match(/resp_[0-9a-f]{44}/g))
  expect(others).toEqual([])
  const body = '{"id":"resp_late","object":"response","status":"completed","output":[]}'
  fixture.upstream.script('odd', { kind: 'whole', body })
  expect((await at(id ?? '')).json()).toMatchObject({ id })
})

describe('the id of a stream that did not end', () => {
  const begun = [
    'event: response.created\ndata: {"type":"response.created","sequence_number":0,"response":{"id":"resp_early","status":"in_progress","output":[]}}\n\n',
    'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","sequence_number":1,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"Hello"}\n\n',
  ]
  const idIn = (text: string): string => /"id":"(resp_[0-9a-f]{44})"/.exec(text)?.[1] ?? ''
  const isReached = async (id: string): Promise<void> => {
    const body = '{"id":"resp_early","object":"response","status":"incomplete","output":[]}'
    fixture.upstream.script('odd', { kind: 'whole', body })
    // The charge is stored with it, after the client has left.
    await vi.waitFor(async () => expect((await at(id)).json()).toMatchObject({ id }), 60_000)
    expect(fixture.upstream.received('odd').at(-1)?.path).toBe('/v1/responses/resp_early')
  }

  test("a request with the response id of a stream that the client left is sent upstream with the provider's id", async () => {
    const endless = [...begun, ...Array.from({ length: 5_000 }, () => begun[1] ?? '')]
    fixture.upstream.script('odd', { kind: 'stream', frames: endless, paceMs: 5, ending: 'stall' })
    const body = { model: 'odd', input: 'hi', stream: true }
    const live = await open(fixture.gateway.url, body, { key: 'ann', path: '/v1/responses' })
    await live.until('output_text.delta')
    live.abort()
    await fixture.upstream.received('odd').at(-1)?.ended
    await isReached(idIn(live.text()))
  })

  test("a request with the response id of a stream that the upstream broke off is sent upstream with the provider's id", async () => {
    fixture.upstream.script('odd', { kind: 'stream', frames: begun, ending: 'close' })
    const { text } = await post({ stream: true })
    expect(text).toContain('response.failed')
    await isReached(idIn(text))
  })
})

describe('an id in the error message of a stream', () => {
  const BEGUN =
    'event: response.created\ndata: {"type":"response.created","sequence_number":0,"response":{"id":"resp_odd","output":[]}}\n\n'
  const DELTA =
    'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","sequence_number":1,"output_index":0,"delta":"Hel"}\n\n'
  const error = (id: string): string =>
    `event: error\ndata: {"type":"error","sequence_number":2,"code":"server_error","message":"Response '${id}' was lost: \u00fc.","param":null}\n\n`

  test("an error event at the beginning of a stream quotes the gateway's response id in place of the upstream's", async () => {
    fixture.upstream.script('odd', {
      kind: 'whole',
      body: '{"id":"resp_before","object":"response","output":[]}',
    })
    const { id } = (await post({})).json()
    fixture.upstream.script('odd', { kind: 'stream', frames: [error('resp_before')], ending: 'no done' })
    const { text } = await post({ stream: true, previous_response_id: id })
    expect(text).toContain(`'${id}' was lost: \u00fc.`)
    expect(text).not.toContain('resp_before')
  })

  test("an error event in the middle of a stream quotes the gateway's response id in place of the upstream's", async () => {
    const frames = [BEGUN, DELTA, error('resp_odd')]
    fixture.upstream.script('odd', { kind: 'stream', frames, ending: 'no done' })
    const { text } = await post({ stream: true })
    expect(text).toMatch(/'resp_[0-9a-f]{44}' was lost: \u00fc\./)
    expect(text).not.toContain('resp_odd')
  })
})
