import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { ADMIN, ADMIN_USER, plainConfiguration, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { startGuardServices } from '../fixtures/guard-services.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    ...plainConfiguration(upstream.baseUrl('m')),
    users: [ROOT, user(2, 'ann', [token('ann')], { access_token: ANN.accessToken }), ADMIN_USER],
    guards: [{ name: 'filed', do: 'flag', match: { regex: 'code-[0-9]+' }, where: ['input'] }],
  }))
})
afterAll(() => fixture?.close())

type Shown = Readonly<Record<string, unknown>> & { readonly name: string; readonly version: string }
const asAdmin = <Data = unknown>(request: Parameters<typeof manage>[2], body?: Record<string, unknown>) =>
  manage<Data>(fixture.gateway.url, ADMIN, request, body)
const asAnn = <Data = unknown>(request: Parameters<typeof manage>[2], body?: Record<string, unknown>) =>
  manage<Data>(fixture.gateway.url, ANN, request, body)
const guards = async () => (await asAdmin<Shown[]>('GET /api/guards')).data
const say = (content: string) => fixture.chat('ann', ask('m', { messages: [{ role: 'user', content }] }))
const NEW = { name: 'added', do: 'block', where: ['input'], match: { words: ['yonder'] } }

test('guards that gateway.yaml declares are listed with their numbers of checked calls, matches, blocked calls and failures', async () => {
  await say('code-1 and code-2')
  await say('nothing')
  const [filed] = await guards()
  expect(filed).toMatchObject({
    name: 'filed',
    mode: 'enforce',
    do: 'flag',
    match: { regex: ['code-[0-9]+'], most: 256 },
    managed: true,
    managed_by: 'gateway.yaml',
    calls: 2,
    matches: 2,
    blocked: 0,
    failed: 0,
  })
  expect(filed?.['delay_p95_ms']).toBeGreaterThan(0)
})

test('only administrators may see or change guards', async () => {
  for (const [request, body] of [
    ['GET /api/guards', undefined],
    ['POST /api/guards', NEW],
    ['PUT /api/guards', NEW],
    ['DELETE /api/guards/filed', undefined],
    ['POST /api/guards/test', { text: 'x' }],
  ] as const)
    expect((await asAnn(request, body)).status, request).toBe(403)
})

test('a guard that is added over HTTP checks the next call, and no call after its removal', async () => {
  const made = await asAdmin<Shown>('POST /api/guards', NEW)
  expect([made.status, made.data]).toMatchObject([200, { name: 'added', managed: false, calls: 0 }])
  expect((await say('over yonder')).status).toBe(400)
  expect((await guards()).find(({ name }) => name === 'added')).toMatchObject({ calls: 1, blocked: 1 })

  const changed = await asAdmin<Shown>('PUT /api/guards', { ...NEW, do: 'flag', version: made.data.version })
  expect([changed.status, changed.data]).toMatchObject([200, { do: 'flag' }])
  expect((await say('over yonder')).status).toBe(200)
  const late = await asAdmin('PUT /api/guards', { ...NEW, version: made.data.version })
  expect([late.status, late.message]).toEqual([409, expect.stringContaining('meanwhile')])

  expect((await asAdmin('DELETE /api/guards/added')).status).toBe(200)
  expect((await guards()).map(({ name }) => name)).toEqual(['filed'])
  expect((await say('over yonder')).headers['x-gateway-guards']).toBe('filed=allowed;count=0')
})

test('changes of guards are in the audit log', async () => {
  const { data } = await asAdmin<{ items: { action: string; object: { name: string } }[] }>(
    'GET /api/audit?kind=guard',
  )
  expect(data.items.map(({ action, object }) => [action, object.name])).toEqual([
    ['guard.delete', 'added'],
    ['guard.update', 'added'],
    ['guard.create', 'added'],
  ])
})

test('a guard that gateway.yaml would refuse is refused over HTTP with the same message', async () => {
  for (const [body, message] of [
    [
      { name: 'x', do: 'eat', match: { secrets: true } },
      'guards[1].do: expected one of block, redact, replace, flag',
    ],
    [{ name: 'x', do: 'flag' }, 'expected a mapping with one of regex, words, secrets, pii'],
    [{ name: 'x', do: 'flag', match: { regex: '(' } }, 'expected a regular expression in the syntax of RE2'],
    [{ do: 'flag', match: { secrets: true } }, 'name: expected the name of a guard'],
    [{ ...NEW, name: 'filed' }, 'there is a guard "filed" already'],
  ] as const) {
    const refused = await asAdmin('POST /api/guards', body)
    expect([refused.status, refused.message]).toEqual([
      400,
      expect.stringContaining(message.replace('guards[1].', '')),
    ])
  }
})

test('the answer to a guard whose scope names no group or model warns of it, until there is one', async () => {
  const scope = { groups: ['defualt', 'later'], models: ['m', 'nomodel'] }
  const made = await asAdmin<Shown>('POST /api/guards', { ...NEW, ...scope })
  const model = 'no channel serves nomodel'
  const typo = 'there is no group defualt (default?)'
  expect([made.status, made.data['warnings']]).toEqual([200, [model, typo, 'there is no group later']])
  const root = { id: ROOT.id, accessToken: ROOT.access_token }
  const group = await manage(fixture.gateway.url, root, 'POST /api/group/', { group: 'later' })
  expect(group.status).toBe(200)
  expect((await guards()).map(({ warnings }) => warnings)).toEqual([[], [model, typo]])
  const mended = await asAdmin<Shown>('PUT /api/guards', NEW)
  expect(mended.data['warnings']).toEqual([])
  expect((await asAdmin('DELETE /api/guards/added')).status).toBe(200)
})

test('a guard of gateway.yaml cannot be changed or deleted over HTTP', async () => {
  const changed = await asAdmin('PUT /api/guards', { ...NEW, name: 'filed' })
  expect([changed.status, changed.message]).toEqual([409, expect.stringContaining('gateway.yaml')])
  expect((await asAdmin('DELETE /api/guards/filed')).status).toBe(409)
  expect((await asAdmin('DELETE /api/guards/unknown')).status).toBe(404)
})

test('an API key may only name guards that exist', async () => {
  const [made] = (await asAnn<{ items: { id: number }[] }>('GET /api/token/')).data.items
  const unknown = await asAnn('PUT /api/token/', { id: made?.id, guards: ['nowhere'] })
  expect([unknown.status, unknown.message]).toEqual([400, 'guards: there is no guard "nowhere"'])
  const own = await asAnn<{ guards: string[] }>('PUT /api/token/', { id: made?.id, guards: ['filed'] })
  expect([own.status, own.data.guards]).toEqual([200, ['filed']])
  expect((await asAnn('PUT /api/token/', { id: made?.id, guards: [] })).status).toBe(200)
})

test('POST /api/guards/test returns what guards find in a text, sends nothing upstream, and does not count the check as a call', async () => {
  const before = (await guards())[0]?.['calls']
  const all = await asAdmin('POST /api/guards/test', { text: 'see code-7 there' })
  expect(all.data).toEqual({
    text: 'see code-7 there',
    blocked_by: null,
    verdicts: [{ name: 'filed', verdict: 'flagged', count: 1 }],
    matches: [{ start: 4, end: 10, name: 'filed', kind: expect.any(String) }],
  })
  const draft = await asAdmin('POST /api/guards/test', {
    text: 'see code-7 there',
    guard: { name: 'draft', do: 'redact', match: { regex: 'code-[0-9]' }, with: '#' },
  })
  expect(draft.data).toMatchObject({
    text: 'see # there',
    verdicts: [{ name: 'draft', verdict: 'redacted', count: 1 }],
  })
  const blocked = await asAdmin('POST /api/guards/test', {
    text: 'see code-7 there',
    guard: { name: 'draft', do: 'block', match: { regex: 'code-[0-9]' } },
  })
  expect(blocked.data).toMatchObject({ text: '', blocked_by: 'draft' })
  expect((await asAdmin('POST /api/guards/test', { text: 'x', guards: ['nowhere'] })).status).toBe(404)
  expect((await guards())[0]?.['calls']).toBe(before)
})

test('the usage row of a call has the verdicts of its guards, and never the text that they matched', async () => {
  const answer = await say('code-4711')
  const id = String(answer.headers['x-request-id'])
  const { data } = await asAdmin<{ items: { id: string; guards: string }[] }>(
    `GET /api/log/?request_id=${id}`,
  )
  expect(JSON.stringify(data)).toContain('filed=flagged;count=1')
  expect(JSON.stringify(data)).not.toContain('code-4711')
})

test("the secrets of a guard's service are never shown, and stay unless new ones are sent", async () => {
  const key = 'a-key-that-nobody-sees'
  const services = await startGuardServices()
  onTestFinished(() => services.stop())
  const { url } = services
  const match = (headers: object, at = url) => ({ webhook: { url: at, headers } })
  const guard = { name: 'served', do: 'block', where: ['output'] }
  const made = await asAdmin<Shown>('POST /api/guards', { ...guard, match: match({ authorization: key }) })
  expect([made.status, made.data['match']]).toEqual([200, match({ authorization: '***' })])
  const kept = await asAdmin<Shown>('PUT /api/guards', {
    ...guard,
    timeout: '9s',
    match: match({ authorization: '***' }),
  })
  expect([kept.status, kept.data['timeout']]).toEqual([200, 9_000])
  await say('hello')
  expect(services.asked.map(({ headers }) => headers.authorization)).toEqual([key])
  for (const wrong of [match({ authorization: '***' }, 'http://127.0.0.1:8'), match({ other: '***' })]) {
    const refused = await asAdmin('PUT /api/guards', { ...guard, match: wrong })
    expect([refused.status, refused.message]).toEqual([
      400,
      expect.stringContaining('expected headers in full'),
    ])
  }
  const audit = await asAdmin('GET /api/audit?kind=guard')
  expect(JSON.stringify([await guards(), audit.body])).not.toContain(key)
  expect(JSON.stringify(audit.body)).toContain(url)
  expect(fixture.gateway.logs()).not.toContain(key)
  expect((await asAdmin('DELETE /api/guards/served')).status).toBe(200)
})

test('POST /api/guards/test refuses a guard whose verdicts come from an external service', async () => {
  const served = { name: 's', do: 'block', match: { webhook: { url: 'http://127.0.0.1:9' } } }
  const refused = await asAdmin('POST /api/guards/test', { text: 'x', guard: served })
  expect([refused.status, refused.message]).toEqual([400, expect.stringContaining('decided by a service')])
})
