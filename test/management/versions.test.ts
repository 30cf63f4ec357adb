import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { wholeChat } from '../fixtures/chat-behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

type Request = Parameters<typeof manage>[2]
type Shown = Readonly<Record<string, unknown>> & { readonly version: string }

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const NO_LIMIT = { requests: 0, window: '1s' }

let fixture: Fixture
let channelId: number
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    rate_limits: { global: NO_LIMIT, search: NO_LIMIT, critical: NO_LIMIT },
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [ROOT, user(2, 'ann', [token('ann')], { access_token: 'the-access-token-of-ann' })],
  }))
  const made = {
    name: 'made',
    type: 1,
    key: 'sk-x',
    base_url: fixture.upstream.baseUrl('x'),
    models: 'n',
    group: 'default',
  }
  for (const { path, change } of Object.values(CASES)) {
    if (path.endsWith('/')) continue
    const { status } = await as(path.replace('PUT', 'POST') as Request, change(1))
    if (status !== 200) throw new Error(`${path}: status ${status}`)
  }
  channelId = ((await as('POST /api/channel/', made)).data as unknown as { ids: number[] }).ids[0] ?? 0
})
afterAll(() => fixture.close())

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const as = (request: Request, body?: object) =>
  manage<Shown>(fixture.gateway.url, request.includes('/api/token') ? ANN : ROOT_ACCOUNT, request, body)

interface Case {
  readonly path: Request
  readonly read: () => Promise<Shown>
  readonly change: (value: number) => object
  readonly valueOf: (shown: Shown) => unknown
  readonly expected: (value: number) => unknown
}

const tokenNow = async (): Promise<Shown> =>
  ((await as('GET /api/token/')).data as unknown as { items: Shown[] }).items[0] as Shown

/** An entry of a list of gateway.yaml, which is added over HTTP, and replaced as a whole. */
function named(path: `/api/${string}`, settings: (value: number) => object): Case {
  return {
    path: `PUT ${path}`,
    read: async () => ((await as(`GET ${path}`)).data as unknown as Shown[])[0] as Shown,
    change: (value) => ({ name: 'one', ...settings(value) }),
    valueOf: (shown) => shown,
    expected: (value) => expect.objectContaining(settings(value)),
  }
}

const CASES: Readonly<Record<string, Case>> = {
  channel: {
    path: 'PUT /api/channel/',
    read: async () => (await as(`GET /api/channel/${channelId}`)).data,
    change: (priority) => ({ id: channelId, priority }),
    valueOf: ({ priority }) => priority,
    expected: (value) => value,
  },
  user: {
    path: 'PUT /api/user/',
    read: async () => (await as('GET /api/user/2')).data,
    change: (value) => ({ id: 2, remark: `remark ${value}` }),
    valueOf: ({ remark }) => remark,
    expected: (value) => `remark ${value}`,
  },
  token: {
    path: 'PUT /api/token/',
    read: tokenNow,
    change: (value) => ({ id: 1, name: `name ${value}` }),
    valueOf: ({ name }) => name,
    expected: (value) => `name ${value}`,
  },
  group: {
    path: 'PUT /api/group/',
    read: async () => ((await as('GET /api/group/all')).data as unknown as Shown[])[0] as Shown,
    change: (ratio) => ({ group: 'default', ratio: String(ratio) }),
    valueOf: ({ ratio }) => ratio,
    expected: (value) => String(value),
  },
  guard: named('/api/guards', (value) => ({ do: 'block', match: { words: [`w${value}`] } })),
  'server of tools': named('/api/mcp/servers', (value) => ({ url: `http://127.0.0.1:9/${value}` })),
  toolset: named('/api/mcp/toolsets', (value) => ({ tools: [`tools.t${value}`] })),
  option: {
    path: 'PUT /api/option/',
    read: async () => {
      const { data } = await as('GET /api/option/')
      return (data as unknown as Shown[]).find(({ key }) => key === 'hold_tokens') as Shown
    },
    change: (value) => ({ key: 'hold_tokens', value: String(value) }),
    valueOf: ({ value }) => value,
    expected: (value) => String(value),
  },
}

describe.each(Object.entries(CASES))('a version of a %s', (_, { path, read, change, valueOf, expected }) => {
  test('a change that names an outdated version of an object is a 409 with the present object', async () => {
    const { version } = await read()
    expect(await as(path, { ...change(11), version })).toMatchObject({ status: 200 })
    const present = await read()
    expect(present.version).not.toBe(version)
    const refused = await as(path, { ...change(12), version })
    expect(refused).toMatchObject({ status: 409, success: false, body: { code: 'changed_meanwhile' } })
    expect(refused.data).toEqual(present)
    expect(await as(path, { ...change(12), version: present.version })).toMatchObject({ status: 200 })
    expect(valueOf(await read())).toEqual(expected(12))
  })

  test('the version of an object is the same until the object is edited, and a change need not name it', async () => {
    const { version } = await read()
    expect((await read()).version).toBe(version)
    expect(await as(path, change(13))).toMatchObject({ status: 200 })
    expect(valueOf(await read())).toEqual(expected(13))
  })

  test('of several simultaneous changes with the same version only one is accepted', async () => {
    const { version } = await read()
    const values = [21, 22, 23, 24, 25]
    const statuses = await Promise.all(
      values.map(async (value) => (await as(path, { ...change(value), version })).status),
    )
    expect(statuses.toSorted((a, b) => a - b)).toEqual([200, 409, 409, 409, 409])
    expect(valueOf(await read())).toEqual(expected(values[statuses.indexOf(200)] as number))
  })
})

// `docs/administration.md: Versions`
test.each([
  ['channel', { weight: 1, priority: 1 }, { weight: 31, priority: 32 }],
  ['user', { budget: 1_000_000, budget_period: 'day' }, { budget: 5_000_000, budget_period: 'month' }],
  ['token', { budget: 1_000_000, budget_period: 'day' }, { budget: 5_000_000, budget_period: 'month' }],
])(
  'simultaneous changes of different fields of a %s without a version all stay',
  async (kind, before, after) => {
    const { path, read } = CASES[kind] as Case
    const { id } = await read()
    const change = async (fields: object) =>
      expect(await as(path, { ...fields, id })).toMatchObject({ status: 200 })
    for (let round = 0; round < 3; round += 1) {
      await change(before)
      await Promise.all(Object.entries(after).map(([field, value]) => change({ [field]: value })))
      expect(await read()).toMatchObject(after)
    }
  },
)

test.each(['/api/guards', '/api/mcp/servers', '/api/mcp/toolsets'] as const)(
  'of several simultaneous additions of one name to %s only one is accepted',
  async (path) => {
    const { change } = Object.values(CASES).find((one) => one.path === `PUT ${path}`) as Case
    const statuses = await Promise.all(
      [1, 2, 3].map(async (value) => (await as(`POST ${path}`, { ...change(value), name: 'added' })).status),
    )
    expect(statuses.toSorted((a, b) => a - b)).toEqual([200, 400, 400])
  },
)

test('calls of a key do not change its version or that of its user', async () => {
  const before = [(await tokenNow()).version, (await CASES['user']?.read())?.version]
  fixture.upstream.script('m', wholeChat({ text: 'Hello.' }))
  expect((await fixture.chat('ann', ask('m'))).status).toBe(200)
  expect((await tokenNow())['used_quota']).toBeGreaterThan(0)
  expect([(await tokenNow()).version, (await CASES['user']?.read())?.version]).toEqual(before)
})

test("a change of a channel's key that names the version succeeds, and the channel gets a new version", async () => {
  const { version } = (await as(`GET /api/channel/${channelId}`)).data
  const changed = await as('PUT /api/channel/', { id: channelId, key: 'sk-other', version })
  expect(changed.status).toBe(200)
  expect(changed.data.version).not.toBe(version)
  expect((await as(`GET /api/channel/${channelId}`)).data).toEqual(changed.data)
})
