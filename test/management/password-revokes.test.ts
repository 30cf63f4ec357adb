import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { commandReading, SECRET } from '../fixtures/command.ts'
import { ROOT, user } from '../fixtures/configuration.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const FIRST = 'correct horse'
const SECOND = 'battery staple'

let gateway: RunningGateway
beforeAll(async () => {
  gateway = await startGateway({
    config: {
      rate_limits: {},
      users: [ROOT, ...[2, 3, 4].map((id) => user(id, `user${id}`, [], { access_token: `token-of-${id}` }))],
    },
    env: { GATEWAY_SECRET: SECRET },
  })
})
afterAll(() => gateway?.discard())

const account = (id: number) => ({ id, accessToken: `token-of-${id}` })

const works = async (id: number): Promise<boolean> =>
  (await manage(gateway.url, account(id), 'GET /api/user/self')).status === 200

/** Three ways to set the password of a user who knows the present one. */
const WAYS: Record<
  string,
  (id: number, password: string, was: string, fields: { keep_access_tokens?: boolean }) => Promise<unknown>
> = {
  'an administrator': (id, password, _, fields) =>
    manage(gateway.url, ROOT_ACCOUNT, 'PUT /api/user/', { id, password, ...fields }),
  'the user': (id, password, was, fields) =>
    manage(gateway.url, account(id), 'PUT /api/user/self', { password, original_password: was, ...fields }),
  'sluice user password': (id, password, _, { keep_access_tokens: keep }) =>
    commandReading(
      `${password}\n`,
      gateway,
      'user',
      'password',
      `user${id}`,
      ...(keep ? ['--keep-access-tokens'] : []),
    ),
}

describe.each(Object.keys(WAYS).map((way, index) => [way, 2 + index] as const))(
  'passwords set by %s',
  (way, id) => {
    const set = (password: string, was: string, fields = {}) => WAYS[way]?.(id, password, was, fields)

    test("the first password keeps the user's access token, and a changed one revokes it unless keep_access_tokens is sent", async () => {
      await (way === 'the user' ? WAYS['an administrator']?.(id, FIRST, '', {}) : set(FIRST, ''))
      expect(await works(id)).toBe(true)
      await set(SECOND, FIRST, { keep_access_tokens: true })
      expect(await works(id)).toBe(true)
      await set(FIRST, SECOND)
      expect(await works(id)).toBe(false)
    })
  },
)
