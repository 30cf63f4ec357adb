import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Account, manage, type ManagementResponse } from '../fixtures/account.ts'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'

interface Entry {
  readonly id: number
  readonly at: number
  readonly actor_id: number
  readonly actor: string
  readonly via: string
  readonly address: string
  readonly action: string
  readonly object: { readonly kind: string; readonly id: number | null; readonly name: string }
  readonly changes: readonly { readonly field: string; readonly before: unknown; readonly after: unknown }[]
}
type Request = Parameters<typeof manage>[2]

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const ADMIN = { id: 3, accessToken: 'the-access-token-of-an-admin' }
const NO_LIMIT = { requests: 0, window: '1s' }

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    rate_limits: { global: NO_LIMIT, search: NO_LIMIT, critical: NO_LIMIT },
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [
      ROOT,
      user(2, 'ann', [token('ann')], { access_token: ANN.accessToken }),
      user(3, 'adam', [], { access_token: ADMIN.accessToken, role: 10 }),
    ],
  }))
})
afterAll(() => fixture.close())

async function as<Data = never>(
  account: Account,
  request: Request,
  body?: object,
): Promise<ManagementResponse<Data>> {
  const response = await manage<Data>(fixture.gateway.url, account, request, body)
  expect([request, response.message, response.status]).toEqual([request, '', 200])
  return response
}

async function log(query = ''): Promise<readonly Entry[]> {
  const { data } = await as<{ items: readonly Entry[] }>(
    ROOT_ACCOUNT,
    `GET /api/audit?page_size=100&${query}`,
  )
  return data.items
}

/** The entries that an action adds, oldest first. */
async function entriesOf(act: () => Promise<unknown>): Promise<readonly Entry[]> {
  const [last] = await log()
  await act()
  return (await log()).filter(({ id }) => id > (last?.id ?? 0)).toReversed()
}

const actionsOf = async (act: () => Promise<unknown>): Promise<string[]> =>
  (await entriesOf(act)).map(({ action, actor, object }) => `${actor} ${action} ${object.name}`)

describe('the audit log', () => {
  test('the audit log records who changed which field of what, when, from where, and the values before and after', async () => {
    const [entry, ...others] = await entriesOf(() =>
      as(ADMIN, 'PUT /api/user/', { id: 2, display_name: 'Ann A.', remark: 'on leave' }),
    )
    expect(others).toEqual([])
    expect(entry).toEqual({
      id: expect.any(Number),
      at: expect.any(Number),
      actor_id: 3,
      actor: 'adam',
      via: 'api',
      address: expect.stringContaining('127.0.0.1'),
      action: 'user.update',
      object: { kind: 'user', id: 2, name: 'ann' },
      changes: [
        { field: 'display_name', before: 'ann', after: 'Ann A.' },
        { field: 'remark', before: '', after: 'on leave' },
      ],
    })
    expect(Math.abs((entry?.at ?? 0) - Date.now() / 1000)).toBeLessThan(600)
  })

  test('audit log entries about an API key name the user to whom the key belongs', async () => {
    const made = { name: 'owned', expired_time: -1, remain_quota: 0, unlimited_quota: true }
    const [entry] = await entriesOf(() => as(ANN, 'POST /api/token/', made))
    expect(entry?.object).toMatchObject({ kind: 'key', name: 'owned', owner: { id: 2, name: 'ann' } })
    const [other] = await entriesOf(() => as(ADMIN, 'PUT /api/user/', { id: 2, remark: 'x' }))
    expect(other?.object).not.toHaveProperty('owner')
  })

  test('the audit log has an entry for every change over HTTP', async () => {
    const made = { expired_time: -1, remain_quota: 5, unlimited_quota: false }
    const idOf = async (name: string): Promise<number> => {
      const { data } = await as<{ items: { id: number; name: string }[] }>(
        ANN,
        'GET /api/token/?page_size=100',
      )
      return data.items.find((one) => one.name === name)?.id ?? 0
    }
    const upstream = fixture.upstream.baseUrl('other')
    const openai = { name: 'other', type: 1, key: 'sk-x', base_url: upstream, models: 'm', group: 'default' }
    let channelId = 0
    const option = (key: string, value: string) => () => as(ROOT_ACCOUNT, 'PUT /api/option/', { key, value })
    const steps: [() => Promise<unknown>, string[]][] = [
      [() => as(ANN, 'POST /api/token/', { ...made, name: 'one' }), ['ann key.create one']],
      [
        async () => as(ANN, 'PUT /api/token/', { id: await idOf('one'), name: 'two' }),
        ['ann key.update two'],
      ],
      [
        async () => as(ANN, 'PUT /api/token/?status_only=1', { id: await idOf('two'), status: 2 }),
        ['ann key.update two'],
      ],
      [async () => as(ANN, `POST /api/token/${await idOf('two')}/key`), ['ann key.reveal two']],
      [
        async () => as(ANN, 'POST /api/token/batch/keys', { ids: [await idOf('two')] }),
        ['ann key.reveal two'],
      ],
      [async () => as(ANN, `DELETE /api/token/${await idOf('two')}`), ['ann key.delete two']],
      [() => as(ADMIN, 'POST /api/user/2/tokens', { ...made, name: 'given' }), ['adam key.create given']],
      [
        async () => as(ADMIN, 'PUT /api/user/2/tokens', { id: await idOf('given'), status: 2 }),
        ['adam key.update given'],
      ],
      [
        async () => as(ANN, 'POST /api/token/batch', { ids: [await idOf('given')] }),
        ['ann key.delete given'],
      ],
      [() => as(ANN, 'PUT /api/user/self', { display_name: 'A' }), ['ann user.update ann']],
      [
        () => as(ROOT_ACCOUNT, 'POST /api/user/', { username: 'eve', password: 'the password of eve' }),
        ['root user.create eve'],
      ],
      [
        () => as(ROOT_ACCOUNT, 'POST /api/user/manage', { username: 'eve', action: 'add_quota', value: 7 }),
        ['root user.update eve'],
      ],
      [
        () => as(ROOT_ACCOUNT, 'POST /api/user/manage', { username: 'eve', action: 'disable' }),
        ['root user.update eve'],
      ],
      [
        () => as(ROOT_ACCOUNT, 'POST /api/user/manage', { username: 'eve', action: 'delete' }),
        ['root user.delete eve'],
      ],
      [
        async () => {
          const { data } = await as<{ ids: number[] }>(ADMIN, 'POST /api/channel/', openai)
          channelId = data.ids[0] ?? 0
        },
        ['adam channel.create other'],
      ],
      [() => as(ADMIN, 'PUT /api/channel/', { id: channelId, priority: 3 }), ['adam channel.update other']],
      [() => as(ROOT_ACCOUNT, `POST /api/channel/${channelId}/key`), ['root channel.reveal other']],
      [() => as(ADMIN, `DELETE /api/channel/${channelId}`), ['adam channel.delete other']],
      [option('hold_tokens', '77'), ['root option.update hold_tokens']],
      [option('GroupRatio', '{"default":1,"vip":0.5}'), ['root group.update vip']],
      [option('ModelRatio', '{"m":1,"new":2}'), ['root price.update new']],
      [option('ModelFallback', '{"new":["m"]}'), ['root model.update new']],
    ]
    for (const [act, expected] of steps) expect(await actionsOf(act)).toEqual(expected)
    const [fallback, price, , hold] = await log()
    expect(fallback?.changes).toEqual([{ field: 'fallback', before: null, after: ['m'] }])
    expect(price?.object).toEqual({ kind: 'price', id: null, name: 'new' })
    expect(hold?.changes).toEqual([{ field: 'value', before: null, after: '77' }])
  })

  test('the audit log entry for a change of a channel lists exactly the changed fields', async () => {
    const least = { name: 'least', type: 1, key: 'sk-x', models: 'm' }
    const { data } = await as<{ ids: number[] }>(ADMIN, 'POST /api/channel/', least)
    const [entry] = await entriesOf(() =>
      as(ADMIN, 'PUT /api/channel/', { id: data.ids[0], models: 'm,n', priority: 3 }),
    )
    expect(entry?.changes).toEqual([
      { field: 'models', before: ['m'], after: ['m', 'n'] },
      { field: 'priority', before: null, after: 3 },
    ])
  })

  test('the audit log has sign-ins, sign-outs and refused sign-ins, but no name of an attempted sign-in that no user has', async () => {
    await as(ROOT_ACCOUNT, 'POST /api/user/', { username: 'kim', password: 'the password of kim' })
    const login = (body: object) => call(fixture.gateway.url, body, { path: '/api/user/login' })
    let cookie = ''
    const begun = await entriesOf(async () => {
      const { headers } = await login({ username: 'kim', password: 'the password of kim' })
      cookie = String(headers['set-cookie']).split(';')[0] ?? ''
    })
    expect(begun).toMatchObject([
      { actor: 'kim', via: 'console', action: 'session.begin', object: { kind: 'session', name: 'kim' } },
    ])
    const headers = { cookie }
    const put = { method: 'PUT', path: '/api/user/self', headers }
    expect(await entriesOf(() => call(fixture.gateway.url, { display_name: 'Kim' }, put))).toMatchObject([
      { actor: 'kim', via: 'console', action: 'user.update' },
    ])
    expect(
      await actionsOf(() => call(fixture.gateway.url, '', { path: '/api/user/logout', headers })),
    ).toEqual(['kim session.end kim'])
    expect(await actionsOf(() => login({ username: 'kim', password: 'a wrong password' }))).toEqual([
      'kim session.refuse kim',
    ])
    expect(
      await actionsOf(() => login({ username: 'a password in the wrong field', password: 'kim' })),
    ).toEqual([' session.refuse '])
    expect(await actionsOf(() => login({ access_token: 'an unknown access token' }))).toEqual([
      ' session.refuse ',
    ])
  })

  test('the audit log never has a secret: new passwords, keys, access tokens, headers and proxies are only listed as "changed"', async () => {
    const secrets = [
      'the-new-password',
      'sk-of-upstream',
      'header-value',
      'proxy-password',
      'key-in-the-path',
      'the-system-prompt',
      'value-of-an-override',
    ]
    const [password, key, header, proxy, inUrl, prompt, override] = secrets
    await as(ADMIN, 'PUT /api/user/', { id: 2, password })
    const changed = await manage<string>(fixture.gateway.url, ROOT_ACCOUNT, 'GET /api/user/token')
    expect(changed.status).toBe(200)
    const byRoot = { ...ROOT_ACCOUNT, accessToken: changed.data }
    const made = await manage(fixture.gateway.url, byRoot, 'POST /api/channel/', {
      name: 'secretive',
      type: 1,
      key,
      base_url: `http://127.0.0.1:9/${inUrl}/v1`,
      models: 'm',
      group: 'default',
      header_override: JSON.stringify({ 'x-secret': header }),
      setting: JSON.stringify({ proxy: `http://me:${proxy}@127.0.0.1:9`, system_prompt: prompt }),
      param_override: JSON.stringify({ user: override }),
    })
    expect([made.status, made.message]).toEqual([200, ''])
    const bytes = Buffer.concat(
      ['sluice.db', 'sluice.db-wal'].map((name) => readFileSync(join(fixture.gateway.dataDir, name))),
    ).toString('latin1')
    const answered = await manage<{ items: readonly Entry[] }>(
      fixture.gateway.url,
      byRoot,
      'GET /api/audit?page_size=100',
    )
    const { items } = answered.data
    for (const secret of [...secrets, changed.data, 'the password of kim'])
      expect(JSON.stringify(items)).not.toContain(secret)
    for (const secret of [password, key, proxy, changed.data]) expect(bytes).not.toContain(secret)
    expect(items.filter(({ action }) => action === 'user.update').slice(0, 2)).toMatchObject([
      { actor: 'root', changes: [{ field: 'access_token', before: null, after: 'changed' }] },
      {
        actor: 'adam',
        changes: expect.arrayContaining([{ field: 'password', before: null, after: 'changed' }]),
      },
    ])
    Object.assign(ROOT_ACCOUNT, { accessToken: changed.data })
  })

  test('the audit log is for administrators: members get 403, visitors 401', async () => {
    for (const path of ['/api/audit', '/api/audit/export'])
      for (const [account, status] of [
        [{ ...ANN, accessToken: 'none' }, 401],
        [ANN, 403],
        [ADMIN, 200],
        [ROOT_ACCOUNT, 200],
      ] as const)
        expect(
          (
            await call(fixture.gateway.url, undefined, {
              method: 'GET',
              path,
              headers: { authorization: account.accessToken, 'gateway-user': String(account.id) },
            })
          ).status,
        ).toBe(status)
  })

  test('the audit log can be filtered by actor, kind, object and time, and is divided into pages', async () => {
    await as(ADMIN, 'PUT /api/user/', { id: 2, remark: 'first' })
    await as(ADMIN, 'PUT /api/user/', { id: 2, remark: 'second' })
    const all = await log()
    for (const query of ['actor=adam', 'actor=3'])
      expect(await log(query)).toEqual(all.filter(({ actor_id: id }) => id === 3))
    expect(await log('kind=price')).toEqual(all.filter(({ object }) => object.kind === 'price'))
    for (const query of ['object=ann&kind=user', 'object=2&kind=user'])
      expect(await log(query)).toEqual(all.filter(({ object }) => object.kind === 'user' && object.id === 2))
    const now = Math.floor(Date.now() / 1000)
    expect(await log(`from=${now + 100}`)).toEqual([])
    expect(await log(`to=${now + 100}&from=${now - 10_000}`)).toEqual(all)
    expect(await log(`to=${all.at(-1)?.at}`)).toEqual([])
    const page = await as<{ total: number; items: Entry[] }>(ROOT_ACCOUNT, 'GET /api/audit?p=2&page_size=1')
    expect(page.data).toMatchObject({ page: 2, page_size: 1, total: all.length, items: [all[1]] })
    const refused = await manage(fixture.gateway.url, ROOT_ACCOUNT, 'GET /api/audit?kind=none')
    expect(refused).toMatchObject({
      status: 400,
      message: expect.stringContaining('kind: expected one of user'),
    })
  })

  test('the audit log can be downloaded as CSV, with a line for each field', async () => {
    await as(ADMIN, 'PUT /api/user/', { id: 2, remark: '=1+1', display_name: 'A, B' })
    const { text, headers } = await call(fixture.gateway.url, undefined, {
      method: 'GET',
      path: '/api/audit/export?actor=adam&object=ann',
      headers: { authorization: ROOT_ACCOUNT.accessToken, 'gateway-user': '1' },
    })
    expect(headers['content-type']).toBe('text/csv; charset=utf-8')
    const [head, ...lines] = text.split('\r\n')
    expect(head).toBe(
      'id,at,actor_id,actor,via,address,action,object_kind,object_id,object_name,field,before,after',
    )
    expect(lines.slice(0, 2)).toEqual([
      expect.stringMatching(
        /^\d+,[-\dT:.]+Z,3,adam,api,[^,]+,user\.update,user,2,ann,display_name,A,"A, B"$/,
      ),
      expect.stringMatching(/,ann,remark,second,'=1\+1$/),
    ])
  })
})

test('the creation of users that gateway.yaml declares is in the audit log', async () => {
  const declared = await log('actor=gateway.yaml&kind=user')
  expect(declared.map(({ via, action, object }) => [via, action, object.name])).toEqual([
    ['file', 'user.create', 'adam'],
    ['file', 'user.create', 'ann'],
    ['file', 'user.create', 'root'],
  ])
})
