import { afterAll, beforeAll, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { commandOn } from '../fixtures/command.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const ADMIN = { id: 3, accessToken: 'the-access-token-of-an-admin' }

type Group = Readonly<Record<string, unknown>> & { readonly group: string }

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: { global: { requests: 0 } },
    groups: { default: {}, filed: { ratio: 2, guards: ['named'] } },
    guards: [{ name: 'named', match: { words: ['nothing'] }, do: 'flag' }],
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'), { groups: ['default', 'filed'] })],
    users: [
      ROOT,
      user(2, 'ann', [token('ann')], { access_token: ANN.accessToken, group: 'filed' }),
      user(3, 'admin', [], { access_token: ADMIN.accessToken, role: 10 }),
    ],
  }))
})
afterAll(() => fixture?.close())

const as =
  (account: typeof ANN) =>
  <Data = Group>(request: Parameters<typeof manage>[2], body?: object) =>
    manage<Data>(fixture.gateway.url, account, request, body)
const [root, admin, ann] = [as(ROOT_ACCOUNT), as(ADMIN), as(ANN)]
const group = (...args: string[]) => commandOn(fixture.gateway, 'group', ...args)

test('administrators list groups with ratio, members, models, guards, budget and where they are declared', async () => {
  const { data } = await admin<Group[]>('GET /api/group/all')
  expect(data).toMatchObject([
    { group: 'default', members: 2, models: ['m'], managed: true },
    { group: 'filed', ratio: '2', open: true, members: 1, guards: ['named'], budget: 0, managed: true },
  ])
  expect(await ann('GET /api/group/all')).toMatchObject({ status: 403 })
})

test('root makes, changes and deletes a group; absent fields stay', async () => {
  const made = await root('POST /api/group/', {
    group: 'sales',
    ratio: '0.80',
    budget: 500,
    budget_period: 'week',
  })
  expect(made.data).toMatchObject({
    group: 'sales',
    ratio: '0.8',
    open: false,
    budget: 500,
    budget_period: 'week',
  })
  const changed = await root('PUT /api/group/', {
    group: 'sales',
    open: true,
    guards: ['named'],
    budget: 700,
  })
  expect(changed.data).toMatchObject({
    ratio: '0.8',
    open: true,
    guards: ['named'],
    budget: 700,
    budget_period: 'week',
  })
  const freed = await root('PUT /api/group/', { group: 'sales', guards: [], budget: 0 })
  expect(freed.data).toMatchObject({ open: true, guards: [], budget: 0, budget_period: '' })
  const { data } = await root<{ items: { action: string; object: { name: string } }[] }>(
    'GET /api/audit?kind=group',
  )
  expect(data.items[0]).toMatchObject({ action: 'group.update', object: { name: 'sales' } })
  await root('PUT /api/user/', { id: 3, group: 'sales' })
  expect(await root('DELETE /api/group/?group=sales')).toMatchObject({
    status: 400,
    message: expect.stringContaining('1 users belong to "sales"'),
  })
  await root('PUT /api/user/', { id: 3, group: 'default' })
  expect((await root('DELETE /api/group/?group=sales')).status).toBe(200)
  expect(await root('DELETE /api/group/?group=sales')).toMatchObject({ status: 404 })
})

test('a group and its ratio are in the options at once', async () => {
  await root('POST /api/group/', { group: 'double', ratio: '1', open: true })
  const before = await root<{ value: string; key: string }[]>('GET /api/option/')
  expect(JSON.parse(before.data.find(({ key }) => key === 'GroupRatio')?.value ?? '')).toMatchObject({
    double: 1,
  })
  await root('PUT /api/group/', { group: 'double', ratio: '2.5' })
  const after = await root<{ value: string; key: string }[]>('GET /api/option/')
  expect(JSON.parse(after.data.find(({ key }) => key === 'GroupRatio')?.value ?? '')).toMatchObject({
    double: 2.5,
  })
})

test.each([
  [
    'a group of the file',
    'PUT /api/group/',
    { group: 'filed', ratio: '1' },
    409,
    'groups.filed is set in gateway.yaml',
  ],
  ['an unknown group', 'PUT /api/group/', { group: 'nowhere', ratio: '1' }, 404, 'there is no group'],
  ['a present group', 'POST /api/group/', { group: 'double' }, 400, 'already'],
  ['a ratio in words', 'POST /api/group/', { group: 'x', ratio: 'half' }, 400, 'ratio: expected a decimal'],
  ['a negative ratio', 'POST /api/group/', { group: 'x', ratio: '-1' }, 400, 'ratio: expected a decimal'],
  ['an unknown guard', 'POST /api/group/', { group: 'x', guards: ['y'] }, 400, 'there is no guard "y"'],
  ['a budget without period', 'POST /api/group/', { group: 'x', budget: 5 }, 400, 'budget_period: expected'],
  ['an invisible name', 'POST /api/group/', { group: 'a\u200bb' }, 400, 'invisible'],
  ['the default group', 'DELETE /api/group/?group=default', undefined, 400, 'cannot be deleted'],
  ['no name', 'DELETE /api/group/', undefined, 400, 'group: expected'],
] as const)(
  'a change of groups that cannot be made says why: %s',
  async (_, request, body, status, message) => {
    expect(await root(request, body)).toMatchObject({ status, message: expect.stringContaining(message) })
  },
)

test.each([
  ['POST /api/group/', { group: 'x' }],
  ['PUT /api/group/', { group: 'x' }],
  ['DELETE /api/group/?group=x', undefined],
] as const)('only root changes groups: %s', async (request, body) => {
  expect(await admin(request, body)).toMatchObject({ status: 403 })
})

test('sluice group makes and changes groups, moves users, and deletes', async () => {
  const made = await group('create', 'lab', '--ratio', '0.5', '--open', '--budget', '10usd', '--per', 'month')
  expect(made.out, made.err).toMatch(/^lab +0\.5 +yes +0 +0 of 5000000 .* per month/m)
  expect(made.err).toContain('budget: 5000000')
  expect(made.err).toContain('no channel serves this group')
  expect((await group('update', 'lab', '--closed', '--guards', 'named', '--json')).json()).toMatchObject({
    ratio: '0.5',
    open: false,
    guards: ['named'],
    budget: 5_000_000,
  })
  expect((await group('add', 'lab', 'ann')).out).toBe('The user "ann" belongs to the group "lab".\n')
  const shown = await group('show', 'lab')
  expect(shown.out, shown.err).toContain('members   1: ann')
  expect(await group('delete', 'lab')).toMatchObject({
    code: 1,
    err: expect.stringContaining('move them first'),
  })
  await group('add', 'filed', 'ann')
  expect((await group('delete', 'lab')).out).toBe('The group "lab" is deleted.\n')
  expect(await group('update', 'filed', '--ratio', '1')).toMatchObject({
    code: 1,
    err: expect.stringContaining('set in gateway.yaml'),
  })
})
