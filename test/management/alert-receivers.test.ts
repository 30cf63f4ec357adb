import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Webhook } from 'standardwebhooks'
import { manage } from '../fixtures/account.ts'
import { type AlertReceiver, startAlertReceiver } from '../fixtures/alert-receiver.ts'
import { plainConfiguration, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

const AS_ROOT = { id: 1, accessToken: ROOT.access_token }
const ADA = { id: 3, accessToken: 'the-access-token-of-ada' }
/** The quota units of five dollars, which is the default threshold. */
const FIVE_DOLLARS = 2_500_000

let fixture: Fixture
let filed: AlertReceiver
let added: AlertReceiver
beforeAll(async () => {
  filed = await startAlertReceiver()
  added = await startAlertReceiver()
  fixture = await startFixture((upstream) => ({
    ...plainConfiguration(upstream.baseUrl('m')),
    users: [
      ROOT,
      user(2, 'ann', [token('ann')], { quota: FIVE_DOLLARS }),
      user(3, 'ada', [], { role: 10, access_token: ADA.accessToken }),
    ],
    alerts: [filed.declared('channel.back')],
  }))
})
afterAll(async () => {
  await fixture?.close()
  await Promise.all([filed?.stop(), added?.stop()])
})

type Receiver = Readonly<Record<'id' | 'host' | 'managed_by', string>> & Readonly<Record<string, unknown>>
const asRoot = <Data = unknown>(request: Parameters<typeof manage>[2], body?: Record<string, unknown>) =>
  manage<Data>(fixture.gateway.url, AS_ROOT, request, body)
const list = async () => (await asRoot<Receiver[]>('GET /api/alert/')).data
const addedOne = async () => (await list()).find((one) => one.managed_by === '')
/** An address with a secret in its path. */
const secretUrl = () => `${added.url}/private-path`

test('an alert receiver that is added gets events, signed with the secret that was shown once', async () => {
  const made = await asRoot<{ id: string; secret: string }>('POST /api/alert/', {
    url: secretUrl(),
    events: ['quota.low'],
  })
  expect(made.status, made.message).toBe(200)
  expect(made.headers['cache-control']).toContain('no-store')
  const { secret, id } = made.data
  expect(secret).toMatch(/^whsec_/)
  expect(await list()).toEqual([
    expect.objectContaining({
      events: ['channel.back'],
      managed: true,
      managed_by: 'gateway.yaml',
      last: null,
    }),
    {
      id,
      host: new URL(added.url).host,
      events: ['quota.low'],
      format: 'standard',
      managed: false,
      managed_by: '',
      waiting: 0,
      last: null,
    },
  ])
  await fixture.chat('ann', ask('m'))
  await added.atLeast(1)
  const [alert] = added.received
  expect(alert).toMatchObject({ type: 'quota.low', data: { username: 'ann' } })
  const headers = alert?.headers as Record<string, string>
  expect(() => new Webhook(secret).verify(alert?.text ?? '', headers)).not.toThrow()
  await expect
    .poll(async () => (await addedOne())?.['last'])
    .toMatchObject({ type: 'quota.low', status: 204 })
})

test("POST /api/alert/:id/test sends the alert receiver one signed event, and returns the receiver's HTTP status", async () => {
  const { id } = (await addedOne()) ?? { id: '' }
  const before = added.received.length
  const tested = await asRoot<Record<string, unknown>>(`POST /api/alert/${id}/test`)
  expect(tested.data).toEqual({ success: true, status: 204, message: '', time: expect.any(Number) })
  expect(added.received.slice(before)).toMatchObject([{ type: 'test', data: {} }])
  added.answer(() => 500)
  expect((await asRoot(`POST /api/alert/${id}/test`)).data).toMatchObject({
    success: false,
    status: 500,
    message: 'it responded 500',
  })
  expect(added.received).toHaveLength(before + 2)
  expect((await addedOne())?.['last']).toMatchObject({ type: 'test', status: 500 })
  added.answer(() => 204)

  const ofFile = (await list()).find(({ managed_by }) => managed_by === 'gateway.yaml')
  expect((await asRoot(`POST /api/alert/${ofFile?.id}/test`)).data).toMatchObject({ success: true })
  expect(filed.received).toMatchObject([{ type: 'test', isSigned: true }])
})

test("address and secret of an alert receiver are in no list, nor in the audit log, nor in the gateway's files", async () => {
  const texts = [
    JSON.stringify(await list()),
    JSON.stringify((await asRoot('GET /api/audit')).data),
    JSON.stringify((await asRoot('GET /api/option/')).data),
  ]
  for (const text of texts) {
    expect(text).not.toContain('private-path')
    expect(text).not.toContain('whsec_')
  }
  const { data } = await asRoot<{ items: object[] }>('GET /api/audit?kind=alert')
  expect(data.items[0]).toMatchObject({
    action: 'alert.create',
    changes: expect.arrayContaining([
      { field: 'secret', before: null, after: 'changed' },
      { field: 'host', before: null, after: new URL(added.url).host },
    ]),
  })
  const folder = fixture.gateway.dataDir
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const path = join(folder, file)
    if (statSync(path).isFile()) expect(readFileSync(path, 'latin1')).not.toContain('private-path')
  }
})

test('the events and the address of an alert receiver can be changed, and the receiver can be removed', async () => {
  const { id } = (await addedOne()) ?? { id: '' }
  expect(await asRoot('PUT /api/alert/', { id, events: ['channel.back'] })).toMatchObject({ status: 200 })
  expect(await addedOne()).toMatchObject({ id, events: ['channel.back'] })
  expect(await asRoot('PUT /api/alert/', { id, url: `${added.url}/other` })).toMatchObject({ status: 200 })
  expect(await addedOne()).toMatchObject({ id, events: ['channel.back'] })
  expect(await asRoot(`DELETE /api/alert/${id}`)).toMatchObject({ status: 200 })
  expect(await addedOne()).toBeUndefined()
  expect(await asRoot(`DELETE /api/alert/${id}`)).toMatchObject({ status: 404 })
})

test('simultaneous changes of the events and the format of a receiver both stay', async () => {
  const made = await asRoot<{ id: string }>('POST /api/alert/', { url: secretUrl(), events: ['quota.low'] })
  const { id } = made.data
  for (const [format, event] of [
    ['slack', 'channel.back'],
    ['standard', 'quota.low'],
  ]) {
    const changes = [{ format }, { events: [event] }]
    await Promise.all(changes.map((change) => asRoot('PUT /api/alert/', { id, ...change })))
    expect(await addedOne()).toMatchObject({ format, events: [event] })
  }
  expect((await asRoot(`DELETE /api/alert/${id}`)).status).toBe(200)
})

test('alert receivers that gateway.yaml declares cannot be changed or removed over HTTP', async () => {
  const [{ id }] = (await list()) as [Receiver]
  for (const [request, body] of [
    ['PUT /api/alert/', { id, events: ['quota.low'] }],
    [`DELETE /api/alert/${id}`, undefined],
  ] as const) {
    const refused = await asRoot(request, body)
    expect([refused.status, refused.body['code']]).toEqual([409, 'managed_by_file'])
  }
})

test.each([
  ['ftp://example.com/', /^url: /],
  ['http://user:password@example.com/', /^url: /],
  ['http://169.254.169.254/latest', /^url: /],
  ['not an address', /^url: /],
])('an invalid address of an alert receiver is refused: %s', async (url, message) => {
  const refused = await asRoot('POST /api/alert/', { url, events: ['quota.low'] })
  expect(refused.status).toBe(400)
  expect(refused.message).toMatch(message)
  expect(refused.message).not.toContain('password@')
})

test('an alert receiver with a known address or unknown events is refused, and only root may list receivers', async () => {
  const twice = await asRoot('POST /api/alert/', { url: filed.url, events: ['quota.low'] })
  expect(twice).toMatchObject({ status: 400 })
  expect(twice.message).toMatch(/^url: /)
  for (const events of [[], ['nothing.happened']])
    expect(await asRoot('POST /api/alert/', { url: added.url, events })).toMatchObject({ status: 400 })
  const refused = await manage(fixture.gateway.url, ADA, 'GET /api/alert/')
  expect([refused.status, refused.body['code']]).toEqual([403, 'role_too_low'])
})

test('GET /api/option/declared lists the values of gateway.yaml with their lines, to root only, without secrets', async () => {
  const { data, status } = await asRoot<{ file: string; items: Receiver[] }>('GET /api/option/declared')
  expect(status).toBe(200)
  expect(data.file).toBe('gateway.yaml')
  expect(data.items).toContainEqual({ path: 'alerts[0].url', line: expect.any(Number), value: 'set' })
  expect(data.items).toContainEqual({
    path: 'alerts[0].events',
    line: expect.any(Number),
    value: ['channel.back'],
  })
  expect(JSON.stringify(data)).not.toMatch(/whsec_|upstream-key|root-access-token/)
  const refused = await manage(fixture.gateway.url, ADA, 'GET /api/option/declared')
  expect(refused.status).toBe(403)
})
