import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { type LiveResponse, send } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'

const ACCOUNTS = {
  root: { id: 1, accessToken: ROOT.access_token },
  ada: { id: 2, accessToken: 'the-access-token-of-ada' },
  ann: { id: 3, accessToken: 'the-access-token-of-ann' },
  ben: { id: 4, accessToken: 'the-access-token-of-ben' },
}
type Person = keyof typeof ACCOUNTS

/** Quota units of a token: 2 USD and 8 USD per million, at 500,000 units in one USD. */
const [INPUT, OUTPUT] = [1, 4]

interface Running {
  readonly total: number
  readonly items: readonly (Readonly<Record<string, unknown>> & { readonly id: string })[]
  readonly others: readonly unknown[]
}

let fixture: Fixture
const opened: LiveResponse[] = []
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: { global: { requests: 0 }, critical: { requests: 0 } },
    models: priced(['m', 'silent']),
    channels: [
      channel('m', upstream.baseUrl('m')),
      channel('silent', upstream.baseUrl('silent')),
      channel('spare', upstream.baseUrl('spare'), { models: ['silent'], priority: -1 }),
    ],
    users: [
      ROOT,
      user(2, 'ada', [], { access_token: ACCOUNTS.ada.accessToken, role: 10 }),
      user(3, 'ann', [token('ann')], { access_token: ACCOUNTS.ann.accessToken }),
      user(4, 'ben', [token('ben')], { access_token: ACCOUNTS.ben.accessToken }),
    ],
  }))
  fixture.upstream.script('silent', { kind: 'silence' })
  fixture.upstream.script('spare', { kind: 'whole' })
})
afterEach(async () => {
  // A stream whose client has left would be listed until the gateway notices: `docs/api.md: Calls under way`.
  for (const { id } of (await running('root')).items) await stop('root', id)
  for (const live of opened.splice(0)) live.abort()
  for (;;) if ((await running('root')).total === 0) break
})
afterAll(() => fixture?.close())

async function running(person: Person, path = '/api/running'): Promise<Running> {
  const { status, data } = await manage<Running>(
    fixture.gateway.url,
    ACCOUNTS[person],
    `GET ${path}` as 'GET /',
  )
  expect(status).toBe(200)
  return data
}

const stop = (person: Person, id: string) =>
  manage(fixture.gateway.url, ACCOUNTS[person], `POST /api/running/${id}/stop`)

/** Begins a stream that has sent three words and goes on only when it is stopped. */
async function begin() {
  fixture.upstream.script('m', { kind: 'stream', events: 3, ending: 'stall' })
  const live = await fixture.live('ann', askStream('m'))
  opened.push(live)
  await live.until(' word2')
  return { live, id: String(live.headers['x-request-id']) }
}

/** The row of a settled call. */
async function rowOf(id: string): Promise<Readonly<Record<string, unknown>>> {
  return vi.waitFor(async () => {
    const { data, status } = await manage<Readonly<Record<string, unknown>>>(
      fixture.gateway.url,
      ACCOUNTS.root,
      `GET /api/log/${id}`,
    )
    expect(status).toBe(200)
    return data
  }, 60_000)
}

test('a running call is listed with its tokens and cost so far, until it ends', async () => {
  const { live, id } = await begin()
  let item: Running['items'][number] | undefined
  const tokens = async (): Promise<number> => {
    item = (await running('ada')).items.find((one) => one.id === id)
    return Number(item?.['output_tokens'])
  }
  await expect.poll(tokens).toBeGreaterThanOrEqual(3)
  expect(item).toMatchObject({
    user_id: 3,
    username: 'ann',
    token_name: 'token-ann',
    model_name: 'm',
    kind: 'chat',
    is_stream: true,
    channel: 'm',
    attempt: 1,
    state: 'answering',
  })
  live.abort()
  const row = await rowOf(id)
  expect(item?.['output_tokens']).toBe(row['completion_tokens'])
  // The prompt is estimated until the call is settled.
  const ofPrompt = Number(item?.['cost']) - Number(item?.['output_tokens']) * OUTPUT
  expect(ofPrompt).toBeGreaterThanOrEqual(Number(row['prompt_tokens']) * INPUT)
  expect(item?.['held']).toBeGreaterThan(Number(item?.['cost']))
})

test('a running call that waits for its provider is listed with a cost of 0', async () => {
  const sent = send(fixture.gateway.url, ask('silent'), { key: 'ann' })
  await fixture.upstream.receivedAtLeast('silent', 1)
  const { items } = await running('root')
  expect(items).toMatchObject([{ state: 'sent', output_tokens: 0, cost: 0, is_stream: false }])
  sent.destroy()
})

test('the list of running calls shows members only their own calls, without channels', async () => {
  const { id } = await begin()
  const own = await running('ann', '/api/running/self')
  expect(own.items.map((one) => one.id)).toEqual([id])
  expect(own.items[0]).not.toHaveProperty('channel')
  expect((await running('ben', '/api/running/self')).items).toEqual([])
  const refused = await manage(fixture.gateway.url, ACCOUNTS.ann, 'GET /api/running')
  expect([refused.status, refused.body['code']]).toEqual([403, 'role_too_low'])
  const unknown = await manage(fixture.gateway.url, ACCOUNTS.ann, 'GET /api/running/self?nodes=some')
  expect(unknown.status).toBe(400)
})

test('a running stream that is stopped ends with an error event, and is charged for what was delivered', async () => {
  const { live, id } = await begin()
  expect((await stop('ben', id)).status).toBe(404)
  expect((await stop('ann', id)).status).toBe(200)
  const { text } = await live.end()
  const error = text.split('\n').find((line) => line.includes('"error"'))
  expect(error).toContain('"code":"call_stopped"')
  const requests = fixture.upstream.received('m')
  await requests.at(-1)?.ended
  expect(requests.at(-1)?.completed).toBe(false)
  const row = await rowOf(id)
  expect(row).toMatchObject({ reason: 'stopped', cause: 'stopped' })
  expect(row['completion_tokens']).toBeGreaterThanOrEqual(3)
  expect(row['quota']).toBe(Number(row['prompt_tokens']) * INPUT + Number(row['completion_tokens']) * OUTPUT)
  expect((await stop('ann', id)).status).toBe(404)
  const { data } = await manage<{ items: readonly Readonly<Record<string, unknown>>[] }>(
    fixture.gateway.url,
    ACCOUNTS.root,
    'GET /api/audit?kind=call',
  )
  expect(data.items[0]).toMatchObject({
    actor: 'ann',
    action: 'call.stop',
    object: { kind: 'call', name: id },
  })
})

test('of several simultaneous requests to stop a running call one succeeds, and the audit log has one entry', async () => {
  const { id } = await begin()
  const answers = await Promise.all([stop('ann', id), stop('root', id), stop('root', id)])
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 404, 404])
  await rowOf(id)
  const { data } = await manage<{ items: readonly { object: { name: string } }[] }>(
    fixture.gateway.url,
    ACCOUNTS.root,
    'GET /api/audit?kind=call',
  )
  expect(data.items.filter(({ object }) => object.name === id)).toHaveLength(1)
})

test('a running call without stream that is stopped gets a 503, costs its prompt, and is not sent to another channel', async () => {
  const asked = fixture.upstream.received('spare').length
  const answer = fixture.chat('ann', ask('silent'))
  await fixture.upstream.receivedAtLeast('silent', 2)
  const { items } = await running('ada')
  expect((await stop('ada', items[0]?.id ?? '')).status).toBe(200)
  const { status, headers, text } = await answer
  expect([status, headers['x-should-retry']]).toEqual([503, 'false'])
  expect(JSON.parse(text)).toMatchObject({ error: { type: 'gateway_error', code: 'call_stopped' } })
  const row = await rowOf(items[0]?.id ?? '')
  expect(row).toMatchObject({ reason: 'stopped', cause: 'stopped', error_status: 503, completion_tokens: 0 })
  expect(row['prompt_tokens']).toBeGreaterThan(0)
  expect(row['quota']).toBe(Number(row['prompt_tokens']) * INPUT)
  expect(fixture.upstream.received('spare')).toHaveLength(asked)
})
