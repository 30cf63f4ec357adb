import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Account, manage } from '../fixtures/account.ts'
import { ROOT, token, user } from '../fixtures/configuration.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { createToken, type ShownPage } from '../fixtures/tokens.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const FULL = { id: 3, accessToken: 'the-access-token-of-one-who-is-full' }
const MAX = 12

const NAMES: Record<string, string> = {
  AlphaKey0123456789: 'Alpha',
  BetaKey9876543210: 'alphabet',
  GammaKey55555: 'beta_1',
  DeltaKey66666: 'beta11',
  EpsilonKey77777: 'back\\slash',
  ZetaKey88888: "it's; DROP TABLE tokens --",
  EtaKey99999: '100 done',
  ThetaKey00000: '__proto__',
}

let gateway: RunningGateway
beforeAll(async () => {
  gateway = await startGateway({
    config: {
      rate_limits: {},
      options: { max_user_tokens: MAX },
      users: [
        ROOT,
        user(
          2,
          'ann',
          Object.entries(NAMES).map(([key, name]) => token(key, { name })),
          { access_token: ANN.accessToken },
        ),
        user(
          3,
          'full',
          Array.from({ length: MAX }, (_, index) => token(`full${index}`, { name: `full ${index}` })),
          { access_token: FULL.accessToken },
        ),
      ],
    },
  })
})
afterAll(() => gateway.discard())

const search = (account: Account, query: Record<string, string>) =>
  manage<ShownPage>(gateway.url, account, `GET /api/token/search?${String(new URLSearchParams(query))}`)

async function found(query: Record<string, string>, account: Account = ANN): Promise<string[]> {
  const { status, data, message } = await search(account, query)
  expect(status, message).toBe(200)
  expect(data.total).toBe(data.items.length)
  return data.items.map(({ name }) => name)
}

describe('GET /api/token/search', () => {
  test.each([
    ['exactly, without %', { keyword: 'Alpha' }, ['Alpha']],
    ['without regard to case', { keyword: 'aLPHA' }, ['Alpha']],
    ['not by a part, without %', { keyword: 'alph' }, []],
    ['by how it begins, newest first', { keyword: 'ALPHA%' }, ['alphabet', 'Alpha']],
    ['by how it ends', { keyword: '%bet' }, ['alphabet']],
    ['by what is in it', { keyword: '%pha%' }, ['alphabet', 'Alpha']],
    ['by both ends', { keyword: 'al%et' }, ['alphabet']],
    ['by two pieces', { keyword: '%ph%et' }, ['alphabet']],
    ['where _ is _', { keyword: 'beta_1' }, ['beta_1']],
    ['where _ is _ beside %', { keyword: 'beta_%' }, ['beta_1']],
    ['where \\ is \\', { keyword: 'back\\slash' }, ['back\\slash']],
    ['where \\ is \\ beside %', { keyword: 'back\\%' }, ['back\\slash']],
    ['that is SQL', { keyword: "it's; DROP TABLE tokens --" }, ["it's; DROP TABLE tokens --"]],
    ['by SQL that matches nothing', { keyword: "' OR 1=1 --" }, []],
    ['by SQL beside %', { keyword: "%' OR '1'='1%" }, []],
    ['that is a name of the language', { keyword: '__proto__' }, ['__proto__']],
  ])(
    'GET /api/token/search finds exactly the tokens whose name matches a keyword: %s',
    async (_, query, names) => {
      expect(await found(query)).toEqual(names)
    },
  )

  test.each([
    ['exactly', { token: 'AlphaKey0123456789' }, ['Alpha']],
    ['with sk- before it', { token: 'sk-AlphaKey0123456789' }, ['Alpha']],
    ['with regard to case', { token: 'alphakey0123456789' }, []],
    ['with regard to case, beside %', { token: 'alpha%' }, []],
    ['by how it begins, after sk-', { token: 'sk-Beta%' }, ['alphabet']],
    ['by what is in it', { token: '%Key%' }, Object.values(NAMES).toReversed()],
    ['by SQL', { token: "' OR '1'='1" }, []],
  ])(
    'GET /api/token/search finds exactly the tokens whose key matches a pattern: %s',
    async (_, query, names) => {
      expect(await found(query)).toEqual(names)
    },
  )

  test('GET /api/token/search finds tokens that match both the name and the key', async () => {
    expect(await found({ keyword: 'alpha%', token: '%Key%' })).toEqual(['alphabet', 'Alpha'])
    expect(await found({ keyword: 'alpha%', token: 'Beta%' })).toEqual(['alphabet'])
    expect(await found({ keyword: 'Alpha', token: 'Beta%' })).toEqual([])
  })

  test('GET /api/token/search without patterns returns all tokens of the user', async () => {
    expect(await found({})).toEqual(Object.values(NAMES).toReversed())
    expect(await found({ keyword: '', token: '' })).toHaveLength(Object.keys(NAMES).length)
  })

  test('GET /api/token/search returns pages like GET /api/token/, with keys masked', async () => {
    const { data: page } = await search(ANN, { token: '%Key%', p: '2', ps: '3' })
    expect(page).toMatchObject({ page: 2, page_size: 3, total: 8 })
    expect(page.items.map(({ name }) => name)).toEqual(['back\\slash', 'beta11', 'beta_1'])
    for (const { key } of page.items) expect(key).toMatch(/^sk-.\*{10}.{4}$/)
    expect((await search(ANN, { page_size: '500' })).data.page_size).toBe(100)
  })

  test.each(['%%', 'ab%%', '%%ab', 'a%b%c%d', '%', 'a%', '%_%', '%👩‍👩‍👧‍👦%', 'sk-%'])(
    'GET /api/token/search refuses the pattern %j with 400 in either field',
    async (pattern) => {
      const inKey = await search(ANN, { token: pattern })
      expect(inKey).toMatchObject({ status: 400, success: false })
      expect(inKey.message).toMatch(/^token: expected/)
      if (pattern.startsWith('sk-')) return
      const inName = await search(ANN, { keyword: pattern })
      expect(inName).toMatchObject({ status: 400, success: false })
      expect(inName.message).toMatch(/^keyword: expected/)
    },
  )

  test('GET /api/token/search requires two characters in a pattern, and counts an emoji as one of them', async () => {
    expect(await found({ keyword: '%👩‍👩‍👧‍👦x%' })).toEqual([])
  })

  test("GET /api/token/search never finds another user's tokens", async () => {
    expect(await found({ keyword: 'Alpha' }, FULL)).toEqual([])
    expect(await found({ token: 'AlphaKey0123456789' }, FULL)).toEqual([])
  })
})

describe('a user with the maximum number of tokens', () => {
  test.each([{ keyword: 'full%' }, { token: 'full%' }, { token: 'sk-full%' }])(
    'a user with the maximum number of tokens may not search tokens with the wildcard %: %j',
    async (query) => {
      const answer = await search(FULL, query)
      expect(answer).toMatchObject({ status: 400, success: false })
      expect(answer.message).toContain('exact')
    },
  )

  test('a user with the maximum number of tokens can search tokens only by exact name or key', async () => {
    expect(await found({ keyword: 'FULL 3' }, FULL)).toEqual(['full 3'])
    expect(await found({ token: 'sk-full3' }, FULL)).toEqual(['full 3'])
  })

  test('a user with one token less than the maximum can search tokens by pattern', async () => {
    const { data } = await search(FULL, { keyword: 'full 3' })
    await manage(gateway.url, FULL, `DELETE /api/token/${data.items[0]?.id}`)
    expect((await search(FULL, { keyword: 'full%' })).data.total).toBe(MAX - 1)
    await createToken(gateway.url, FULL, 'one more')
    expect((await search(FULL, { keyword: 'full%' })).status).toBe(400)
  })
})
