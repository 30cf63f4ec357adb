import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Account, manage } from '../fixtures/account.ts'
import { usageText } from '../fixtures/behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

const AS_ROOT = { id: 1, accessToken: ROOT.access_token }
const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const KEYS = ['delta', 'alpha', 'charlie', 'bravo', 'echo']

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: {
      global: { requests: 0, window: '1s' },
      search: { requests: 0, window: '1s' },
    },
    models: priced(['m']),
    channels: ['two', 'one', 'three'].map((name, index) => ({
      ...channel('m', upstream.baseUrl('m')),
      name,
      priority: index === 1 ? 5 : 0,
      weight: [3, 1, 2][index],
    })),
    users: [
      ROOT,
      user(
        2,
        'zoe',
        KEYS.map((name) => ({ ...token(name), name })),
        { access_token: ANN.accessToken, quota: 300_000 },
      ),
      user(3, 'ben', [token('ben')], { quota: 200_000 }),
      user(4, 'max', [], { quota: 100_000, role: 10, group: 'vip' }),
    ],
    groups: { vip: { ratio: 1 } },
  }))
  for (const [key, tokens] of [
    ['charlie', 3000],
    ['alpha', 1000],
    ['alpha', 4000],
    ['ben', 500],
  ] as const) {
    fixture.upstream.script('m', { kind: 'whole', usage: usageText(tokens, 1) })
    await fixture.chat(key, ask('m'))
  }
})
afterAll(() => fixture?.close())

interface Listed {
  readonly id: number
  readonly name?: string
  readonly username?: string
}

/** The names on all pages of a list, two of them on each. */
async function names(account: Account, path: `/${string}`): Promise<string[]> {
  const all: string[] = []
  for (let page = 1; ; page += 1) {
    const paged = `${path}${path.includes('?') ? '&' : '?'}page_size=2&p=${page}` as const
    const { status, data } = await manage<{ items: Listed[]; total: number }>(
      fixture.gateway.url,
      account,
      `GET ${paged}`,
    )
    expect(status, paged).toBe(200)
    all.push(...data.items.map(({ name, username }) => username ?? name ?? ''))
    if (data.items.length === 0 || all.length >= data.total) return all
  }
}

describe('sorted lists', () => {
  test.each(['/api/token/', '/api/token/search?keyword=%25ha%25', '/api/token/search?token=%25ha%25'])(
    'the list of tokens of %s is sorted over all pages, and equal tokens are sorted by their ids',
    async (path) => {
      const of = (query: string) =>
        names(ANN, `${path}${path.includes('?') ? '&' : '?'}${query}` as `/${string}`)
      const found = await of('group=')
      const byName = found.toSorted()
      expect(await of('sort=name')).toEqual(byName)
      expect(await of('sort=name&order=desc')).toEqual(byName.toReversed())
      const bySpend = ['alpha', 'charlie'].filter((name) => found.includes(name))
      await expect.poll(async () => (await of('sort=used_quota&order=desc')).slice(0, 2)).toEqual(bySpend)
      expect(await of('sort=used_quota&order=asc')).toEqual(
        (await of('sort=used_quota&order=desc')).toReversed(),
      )
      // All are alike.
      expect(await of('sort=status&order=desc')).toEqual(found)
      expect((await of('sort=remain_quota')).slice(0, 2)).toEqual(bySpend)
      for (const sort of ['created_time', 'accessed_time'])
        expect((await of(`sort=${sort}`)).toSorted()).toEqual(byName)
    },
  )

  test('the list of users is sorted over all pages, and so are the results of a search for users', async () => {
    const of = (query: string) => names(AS_ROOT, `/api/user/${query}` as `/${string}`)
    expect(await of('?sort=username')).toEqual(['ben', 'max', 'root', 'zoe'])
    expect(await of('?sort=username&order=desc')).toEqual(['zoe', 'root', 'max', 'ben'])
    expect(await of('?sort=role&order=desc')).toEqual(['root', 'max', 'ben', 'zoe'])
    expect(await of('?sort=group&order=desc')).toEqual(['max', 'ben', 'zoe', 'root'])
    expect(await of('?sort=status')).toEqual(['root', 'zoe', 'ben', 'max'])
    await expect.poll(() => of('search?keyword=e&sort=used_quota')).toEqual(['ben', 'zoe'])
    expect((await of('?sort=used_quota&order=desc')).slice(0, 2)).toEqual(['zoe', 'ben'])
    expect(await of('?sort=quota')).toEqual(['max', 'ben', 'zoe', 'root'])
    expect(await of('search?keyword=e&sort=quota&order=desc')).toEqual(['zoe', 'ben'])
    const latest = async () => (await of('?sort=last_active&order=desc')).slice(0, 2).toSorted()
    await expect.poll(latest).toEqual(['ben', 'zoe'])
    const active = await of('?sort=last_active&order=desc')
    expect(await of('?sort=last_active')).toEqual(active.toReversed())
  })

  test('the list of channels is sorted over all pages', async () => {
    const of = (query: string) => names(AS_ROOT, `/api/channel/${query}` as `/${string}`)
    expect(await of('?sort=name')).toEqual(['one', 'three', 'two'])
    expect(await of('search?sort=name&order=desc')).toEqual(['two', 'three', 'one'])
    expect(await of('?sort=priority&order=desc')).toEqual(['one', 'two', 'three'])
    expect(await of('?sort=weight')).toEqual(['one', 'three', 'two'])
    expect(await of('?sort=weight&order=desc')).toEqual(['two', 'three', 'one'])
    const { status } = await manage(fixture.gateway.url, AS_ROOT, 'POST /api/channel/', {
      name: 'off',
      type: 1,
      key: 'k',
      models: 'm',
      base_url: fixture.upstream.baseUrl('m'),
      status: 2,
    })
    expect(status).toBe(200)
    expect((await of('?sort=status&order=desc'))[0]).toBe('off')
    expect((await of('?sort=status')).at(-1)).toBe('off')
  })

  test('a request to sort a list by a field that does not support it is refused', async () => {
    for (const [account, path] of [
      [ANN, '/api/token/?sort=key'],
      [ANN, '/api/token/search?sort=name&order=up'],
      [AS_ROOT, '/api/user/?sort=password_hash'],
      [AS_ROOT, '/api/user/search?sort=remark'],
      [AS_ROOT, '/api/user/2/tokens?sort=key'],
      [AS_ROOT, '/api/channel/?sort=key'],
    ] as const)
      expect((await manage(fixture.gateway.url, account, `GET ${path}`)).status, path).toBe(400)
  })
})
