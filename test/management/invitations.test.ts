import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { commandOn } from '../fixtures/command.ts'
import { priced, ROOT, user } from '../fixtures/configuration.ts'
import { call } from '../fixtures/client.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const ADMIN = { id: 3, accessToken: 'the-access-token-of-an-admin' }
const PEER = { id: 4, accessToken: 'the-access-token-of-a-peer' }
const PASSWORD = 'a password of eight'
const NOT_OPEN =
  'this invitation cannot be accepted: it is unknown, used, withdrawn or expired; ask for another one'

interface Invitation {
  readonly id: number
  readonly link: string
  readonly expires_at: number
}

const configuration = (changes: object = {}) => ({
  options: { public_url: 'https://ai.example.com', base_path: '/ai', trusted_proxies: ['127.0.0.1'] },
  rate_limits: { global: { requests: 0 }, critical: { requests: 25, window: '1h' } },
  groups: { default: {}, sales: { open: false } },
  models: priced(['m']),
  channels: [],
  users: [
    ROOT,
    user(2, 'ann', [], { access_token: ANN.accessToken }),
    user(3, 'admin', [], { access_token: ADMIN.accessToken, role: 10 }),
    user(4, 'peer', [], { access_token: PEER.accessToken, role: 10 }),
  ],
  ...changes,
})

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture(() => configuration())
})
afterAll(() => fixture?.close())

const as =
  (account: typeof ANN) =>
  <Data = Invitation>(request: Parameters<typeof manage>[2], body?: object) =>
    manage<Data>(fixture.gateway.url, account, request.replace(' ', ' /ai') as typeof request, body)
const [root, admin, peer, ann] = [as(ROOT_ACCOUNT), as(ADMIN), as(PEER), as(ANN)]

const tokenOf = ({ link }: Pick<Invitation, 'link'>): string => link.split('#')[1] ?? ''
const invited = async (fields: object = {}): Promise<Invitation> =>
  (await admin('POST /api/user/invite', fields)).data

async function accept(token: string, username: string, more: object = {}, from = '203.0.113.1') {
  const answer = await call(
    fixture.gateway.url,
    JSON.stringify({ token, username, password: PASSWORD, ...more }),
    {
      method: 'POST',
      path: '/ai/api/user/invite/accept',
      headers: { 'content-type': 'application/json', 'x-forwarded-for': from },
    },
  )
  return { status: answer.status, ...JSON.parse(answer.text) } as {
    status: number
    message: string
    code?: string
    data?: { id: number; username: string }
  }
}
const userNamed = async (name: string) => {
  const { data } = await root<{ items: Readonly<Record<string, unknown>>[] }>(
    `GET /api/user/search?keyword=${encodeURIComponent(name)}`,
  )
  return data.items.find(({ username }) => username === name)
}

describe('an invitation', () => {
  test('an invitation is a link under public_url with its token in the fragment, valid once and for 72 hours', async () => {
    const before = Math.floor(Date.now() / 1000)
    const made = await admin('POST /api/user/invite', {
      group: 'sales',
      quota: 500,
      budget: 100,
      budget_period: 'month',
    })
    expect(made.data.link).toMatch(/^https:\/\/ai\.example\.com\/ai\/invite#[\w-]{43}$/)
    const passed = Math.ceil(Date.now() / 1000) - before
    expect(made.data.expires_at - before - 72 * 3600).toBeLessThanOrEqual(passed)
    const token = tokenOf(made.data)
    expect(await accept(token, 'carl')).toMatchObject({ status: 200, data: { username: 'carl' } })
    expect(await userNamed('carl')).toMatchObject({
      role: 1,
      group: 'sales',
      quota: 500,
      budget: 100,
      budget_period: 'month',
    })
    expect(await accept(token, 'carl2')).toMatchObject({ status: 404, message: NOT_OPEN })
    expect(await userNamed('carl2')).toBeUndefined()
    const login = await call(fixture.gateway.url, JSON.stringify({ username: 'carl', password: PASSWORD }), {
      method: 'POST',
      path: '/ai/api/user/login',
      headers: { 'content-type': 'application/json' },
    })
    expect(login.status).toBe(200)
  })

  test('only a digest of the token is stored, and neither token nor link is in lists, logs and the audit log', async () => {
    const made = await invited()
    const token = tokenOf(made)
    const listed = await admin<unknown[]>('GET /api/user/invite')
    const audit = await root('GET /api/audit?page_size=100')
    for (const text of [JSON.stringify(listed.body), JSON.stringify(audit.body), fixture.gateway.logs()])
      expect(text).not.toContain(token)
    const { dataDir } = fixture.gateway
    for (const name of readdirSync(dataDir).filter((file) => file.startsWith('sluice.db')))
      expect(readFileSync(join(dataDir, name)).includes(token)).toBe(false)
  })

  test('a role in an acceptance or an invitation is ignored: the role is always 1', async () => {
    const made = await invited({ role: 100 })
    const accepted = await accept(tokenOf(made), 'dora', { role: 100, group: 'sales', quota: 9, id: 1 })
    expect(accepted.status).toBe(200)
    expect(await userNamed('dora')).toMatchObject({ role: 1, group: 'default', quota: 0 })
  })

  test('two acceptances at the same time create one user', async () => {
    const token = tokenOf(await invited())
    const names = ['eva1', 'eva2', 'eva3']
    const answers = await Promise.all(names.map((name) => accept(token, name, {}, '203.0.113.9')))
    expect(answers.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([200, 404, 404])
    const made = await Promise.all(names.map(userNamed))
    expect(made.filter(Boolean)).toHaveLength(1)
  })

  test('unknown, used, withdrawn and expired invitations get one answer, whether the name is taken or not', async () => {
    const used = tokenOf(await invited())
    await accept(used, 'fred', {}, '203.0.113.2')
    const withdrawn = await invited()
    expect((await admin(`DELETE /api/user/invite/${withdrawn.id}`)).status).toBe(200)
    const expired = await invited()
    const file = new DatabaseSync(join(fixture.gateway.dataDir, 'sluice.db'), { timeout: 60_000 })
    file.exec(`UPDATE invitations SET expires_time = 1 WHERE id = ${expired.id}`)
    file.close()
    for (const token of ['x'.repeat(43), used, tokenOf(withdrawn), tokenOf(expired)])
      for (const name of ['ann', 'nobody-has-this'])
        expect(await accept(token, name, {}, '203.0.113.2')).toMatchObject({ status: 404, message: NOT_OPEN })
  })

  test('a taken name, and one that looks like it, get the answer of a name that is refused for another reason', async () => {
    const token = tokenOf(await invited())
    const answers = []
    for (const name of ['ann', 'Ann', 'аnn', 'an\u200bn'])
      answers.push(await accept(token, name, {}, '203.0.113.3'))
    for (const { status, message } of answers) {
      expect(status).toBe(400)
      expect(message).toBe('username: this name cannot be used here; choose another one')
    }
    expect((await accept(token, 'gerd', {}, '203.0.113.3')).status).toBe(200)
  })

  test.each([
    ['disabled', { action: 'disable' }],
    ['demoted', { action: 'demote' }],
    ['deleted', { action: 'delete' }],
  ])('the invitations of an inviter who is %s are void', async (name, action) => {
    const made = await root<{ id: number }>('POST /api/user/', {
      username: `boss-${name}`,
      password: PASSWORD,
      role: 10,
      access_token: undefined,
    })
    const secret = await commandOn(fixture.gateway, 'user', 'access-token', `boss-${name}`)
    const boss = as({ id: made.data.id, accessToken: secret.out.trim() })
    const { data } = await boss('POST /api/user/invite', {})
    await root('POST /api/user/manage', { id: made.data.id, ...action })
    expect(await accept(tokenOf(data), `of-${name}`, {}, '203.0.113.4')).toMatchObject({
      status: 404,
      message: NOT_OPEN,
    })
  })

  test.each([
    [
      'login.password is off',
      {
        login: {
          password: false,
          oidc: [{ name: 'corp', issuer: 'https://id.example', client_id: 'sluice', client_secret: 's' }],
        },
      },
    ],
    ['its group is not configured any more', { groups: { default: {} } }],
  ])('an invitation is void while %s', async (reason, changes) => {
    const token = tokenOf(await invited({ group: 'sales' }))
    const name = reason.startsWith('login') ? 'hans' : 'ilse'
    await fixture.gateway.apply(configuration(changes))
    for (const wanted of ['ann', name])
      expect(await accept(token, wanted, {}, '203.0.113.5')).toMatchObject({ status: 404, message: NOT_OPEN })
    const another = await admin('POST /api/user/invite', { group: 'sales' })
    expect(another.status).toBe(400)
    await fixture.gateway.apply(configuration())
    expect(await userNamed(name)).toBeUndefined()
    expect((await accept(token, name, {}, '203.0.113.5')).status).toBe(200)
  })

  test('guesses at names with one invitation are limited, from any address', async () => {
    const token = tokenOf(await invited())
    const statuses = []
    for (let n = 0; n < 27; n += 1) statuses.push((await accept(token, 'ann', {}, `198.51.100.${n}`)).status)
    expect([...new Set(statuses)]).toEqual([400, 429])
  })

  test('acceptances from one address are limited as sign-ins are', async () => {
    const statuses = []
    for (let n = 0; n < 27; n += 1)
      statuses.push((await accept(`${n}`.padStart(43, 'x'), 'ann', {}, '192.0.2.77')).status)
    expect([...new Set(statuses)]).toEqual([404, 429])
  })
})

describe('who invites', () => {
  test('an administrator sees and withdraws its own invitations and not those of peers, root all, a user none', async () => {
    const own = await invited({ group: 'sales' })
    const ids = async (by: typeof admin): Promise<number[]> =>
      (await by<Invitation[]>('GET /api/user/invite')).data.map(({ id }) => id)
    expect(await ids(admin)).toContain(own.id)
    expect(await ids(root)).toContain(own.id)
    expect(await ids(peer)).not.toContain(own.id)
    expect(await peer(`DELETE /api/user/invite/${own.id}`)).toMatchObject({ status: 404 })
    expect(await peer('DELETE /api/user/invite/99999')).toMatchObject({ status: 404 })
    for (const request of ['GET /api/user/invite', `DELETE /api/user/invite/${own.id}`] as const)
      expect(await ann(request)).toMatchObject({ status: 403 })
    expect(await ann('POST /api/user/invite', {})).toMatchObject({ status: 403 })
    expect((await root(`DELETE /api/user/invite/${own.id}`)).status).toBe(200)
  })

  test.each([
    [{ group: 'nowhere' }, 'group: there is no group "nowhere"'],
    [{ quota: -1 }, 'quota: expected'],
    [{ budget: 5 }, 'budget'],
  ])('an invitation that could not be accepted is refused: %j', async (fields, message) => {
    const refused = await admin('POST /api/user/invite', fields)
    expect(refused).toMatchObject({ status: 400, message: expect.stringContaining(message) })
  })

  test('the audit log has invitations that were made, accepted and withdrawn, and who accepted', async () => {
    const accepted = await invited({ group: 'sales' })
    await accept(tokenOf(accepted), 'hugo', {}, '203.0.113.6')
    const withdrawn = await invited()
    await admin(`DELETE /api/user/invite/${withdrawn.id}`)
    const { data } = await root<{
      items: { action: string; actor: string; object: { id: number; name: string } }[]
    }>('GET /api/audit?page_size=100')
    const said = data.items.map(({ action, actor, object }) => `${action} ${object.name} ${actor}`)
    expect(said).toEqual(
      expect.arrayContaining([
        `invite.create ${accepted.id} admin`,
        `invite.accept ${accepted.id} hugo`,
        'user.create hugo hugo',
        `invite.delete ${withdrawn.id} admin`,
      ]),
    )
  })

  test('sluice user invite prints the link alone, and invitations are listed and withdrawn by commands', async () => {
    const made = await commandOn(fixture.gateway, 'user', 'invite', '--group', 'sales', '--quota', '1usd')
    expect(made.out).toMatch(/^https:\/\/ai\.example\.com\/ai\/invite#[\w-]{43}\n$/)
    const id = Number(/invitation (\d+),/.exec(made.err)?.[1])
    const listed = await commandOn(fixture.gateway, 'user', 'invitations')
    expect(listed.out).toMatch(new RegExp(`^ *${id}  sales +500000 `, 'm'))
    expect((await commandOn(fixture.gateway, 'user', 'withdraw', String(id))).out).toBe(
      `The invitation ${id} is withdrawn.\n`,
    )
    expect(await accept(made.out.trim().split('#')[1] ?? '', 'ina', {}, '203.0.113.7')).toMatchObject({
      status: 404,
    })
  })
})
