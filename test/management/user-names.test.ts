import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { ROOT, user } from '../fixtures/configuration.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const UNSEEN = 'username: expected a name without bidirectional controls and invisible characters, found '

let gateway: RunningGateway
beforeAll(async () => {
  gateway = await startGateway({
    config: { rate_limits: {}, users: [ROOT, user(2, 'ann', []), user(3, 'Özge', [])] },
  })
})
afterAll(() => gateway?.discard())

const as = (request: Parameters<typeof manage>[2], body: object) =>
  manage<Record<string, unknown>>(gateway.url, ROOT_ACCOUNT, request, body)

const make = (username: string) => as('POST /api/user/', { username, password: 'correct horse' })

describe('a confusable name', () => {
  test.each([
    ['ann\u202E', `${UNSEEN}"ann\\u202e"`],
    ['a\u200Bnn', `${UNSEEN}"a\\u200bnn"`],
    ['a\u200Dnn', `${UNSEEN}"a\\u200dnn"`],
    ['\u2066ann\u2069', `${UNSEEN}"\\u2066ann\\u2069"`],
    ['Ann', 'there is a user "ann" already, and "Ann" differs from it in case alone'],
    ['öZGE', 'there is a user "Özge" already, and "öZGE" differs from it in case alone'],
    ['ａｎｎ', 'there is a user "ann" already, and "ａｎｎ" differs from it in forms of letters alone'],
    ['аnn', 'username: expected letters of one alphabet, found Latin and Cyrillic ones in "аnn"'],
    ['ROOT', 'there is a user "root" already, and "ROOT" differs from it in case alone'],
  ])('a confusable name is refused for a new user and for an existing one: %j', async (name, sentence) => {
    expect(await make(name)).toMatchObject({ status: 400, message: sentence })
    const { data } = await make(`for a moment ${Math.random()}`)
    const renamed = await as('PUT /api/user/', { id: data['id'], username: name })
    expect(renamed).toMatchObject({ status: 400, message: sentence })
  })

  test("a user name with joiners that its script needs is accepted, and so is a change of a name's letter case alone", async () => {
    expect((await make('می\u200Cخواهم')).status).toBe(200)
    expect(await as('PUT /api/user/', { id: 2, username: 'Ann' })).toMatchObject({ status: 200 })
    expect(await as('PUT /api/user/', { id: 2, username: 'ann' })).toMatchObject({ status: 200 })
  })

  test.each(['ann\u202E', 'ROOT', 'ｒｏｏｔ', 'rооt'])(
    'a user name that can be confused with another is refused in gateway.yaml: %j',
    async (name) => {
      const starting = startGateway({ config: { users: [ROOT, user(2, name, [])] } }).then((started) =>
        started.discard(),
      )
      await expect(starting).rejects.toThrow(/invisible characters|alone|one alphabet/)
    },
  )
})
