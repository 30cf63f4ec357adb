import { afterAll, beforeAll, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

const ACCOUNTS = {
  root: { id: 1, accessToken: ROOT.access_token },
  ann: { id: 2, accessToken: 'the-access-token-of-ann' },
  ben: { id: 3, accessToken: 'the-access-token-of-ben' },
}
type Person = keyof typeof ACCOUNTS

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: { global: { requests: 0 } },
    models: priced(['other-gpt', 'gpt-one']),
    groups: { default: { ratio: 1 }, sales: { ratio: 1, open: false } },
    channels: [channel('azure-eu', upstream.baseUrl('up'), { models: ['gpt-one', 'other-gpt'] })],
    users: [
      ROOT,
      user(2, 'ann', [token('firstZyX9', { name: 'notebook' })], { access_token: ACCOUNTS.ann.accessToken }),
      user(3, 'ben', [token('ofbenAbC1', { name: 'slack-bot' })], {
        access_token: ACCOUNTS.ben.accessToken,
      }),
    ],
  }))
  fixture.upstream.script('up', { kind: 'whole' })
})
afterAll(() => fixture?.close())

async function find(by: Person, q: string): Promise<readonly string[]> {
  const { status, data } = await manage<{ items: { kind: string; label: string; path: string }[] }>(
    fixture.gateway.url,
    ACCOUNTS[by],
    `GET /api/find?q=${encodeURIComponent(q)}`,
  )
  expect(status).toBe(200)
  return data.items.map(({ kind, label, path }) => `${kind} ${label} ${path}`)
}

test('the search of the console finds names that contain the text in either letter case, names that begin with it first', async () => {
  expect(await find('root', 'GPT')).toEqual([
    'model gpt-one /models?q=gpt-one',
    'model other-gpt /models?q=other-gpt',
  ])
  expect(await find('root', 'azure')).toEqual([expect.stringMatching(/^channel azure-eu \/channels\/\d+$/)])
  expect(await find('root', 'ann')).toEqual(['user ann /users/2'])
  expect(await find('root', 'sale')).toEqual(['group sales /groups?group=sales'])
  expect(await find('root', '')).toEqual([])
})

test('the search of the console finds a key by its name and by its last four characters', async () => {
  expect(await find('root', 'notebo')).toEqual([
    expect.stringMatching(/^key notebook \/users\/2\/keys\/\d+$/),
  ])
  expect(await find('root', 'AbC1')).toEqual([expect.stringMatching(/^key slack-bot \/users\/3\/keys\/\d+$/)])
  expect(await find('ann', 'ZyX9')).toEqual([expect.stringMatching(/^key notebook \/keys\/\d+$/)])
  expect(await find('ann', 'ZyX')).toEqual([])
})

test('the search of the console finds a call by its id', async () => {
  const { headers } = await fixture.chat('firstZyX9', ask('gpt-one'))
  const id = String(headers['x-request-id'])
  for (const by of ['root', 'ann'] as const) expect(await find(by, id)).toEqual([`call gpt-one /logs/${id}`])
  expect(await find('ben', id)).toEqual([])
})

test('the search of the console finds no keys, users and calls of others for a member', async () => {
  for (const q of ['notebook', 'ZyX9', 'ann', 'azure', 'sales']) expect(await find('ben', q)).toEqual([])
  expect(await find('ben', 'gpt-one')).toEqual(['model gpt-one /models?q=gpt-one'])
})
