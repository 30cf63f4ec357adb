import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { NO_TERMS, ROOT, token, user } from '../fixtures/configuration.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const BAN = { id: 3, accessToken: 'the-access-token-of-ban' }
const ADMIN = { id: 4, accessToken: 'the-access-token-of-an-admin' }
const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }

let gateway: RunningGateway
beforeAll(async () => {
  gateway = await startGateway({
    config: {
      users: [
        ROOT,
        user(2, 'ann', [token('ann')], { access_token: ANN.accessToken, quota: 700 }),
        user(3, 'ban', [], { access_token: BAN.accessToken, status: 2 }),
        user(4, 'ada', [], { access_token: ADMIN.accessToken, role: 10 }),
      ],
    },
  })
})
afterAll(() => gateway.discard())

const self = (
  account: { id: number; accessToken: string },
  headers: Record<string, string | undefined> = {},
) => manage<Record<string, unknown>>(gateway.url, account, 'GET /api/user/self', undefined, headers)

describe('GET /api/user/self', () => {
  test('GET /api/user/self returns exactly the documented fields of the user, in the management envelope', async () => {
    const { status, body } = await self(ANN)
    expect(status).toBe(200)
    expect(body).toEqual({
      success: true,
      message: '',
      data: {
        id: 2,
        username: 'ann',
        display_name: 'ann',
        role: 1,
        status: 1,
        email: '',
        code_host_id: '',
        chat_a_id: '',
        oidc_id: '',
        chat_b_id: '',
        chat_c_id: '',
        forum_id: '',
        group: 'default',
        quota: 700,
        unlimited_quota: false,
        used_quota: 0,
        request_count: 0,
        content_log_what: '',
        content_log_sample: null,
        content_log_keep: null,
        ...NO_TERMS,
        aff_code: '',
        aff_count: 0,
        aff_quota: 0,
        aff_history_quota: 0,
        inviter_id: 0,
        setting: '',
        payment_customer: '',
        sidebar_modules: '',
        has_password: false,
        permissions: { sidebar_settings: true, sidebar_modules: { admin: false } },
      },
    })
  })

  test('GET /api/user/self returns the console rights of an admin and of root', async () => {
    expect((await self(ADMIN)).data['permissions']).toEqual({
      sidebar_settings: true,
      sidebar_modules: { admin: { setting: false } },
    })
    expect((await self(ROOT_ACCOUNT)).data['permissions']).toEqual({
      sidebar_settings: false,
      sidebar_modules: {},
    })
  })
})

describe('the credentials of an account', () => {
  test('an access token for the management API may be sent with or without Bearer', async () => {
    const { status } = await self(ANN, { authorization: `Bearer ${ANN.accessToken}` })
    expect(status).toBe(200)
  })

  test('a management request may name its user in New-Api-User instead of Gateway-User', async () => {
    const { status } = await self(ANN, { 'gateway-user': undefined, 'new-api-user': '2' })
    expect(status).toBe(200)
  })

  test.each([
    ['no Authorization', { authorization: undefined }, 401, 'no access token'],
    ['an unknown access token', { authorization: 'nobodys' }, 401, 'invalid access token'],
    ['an API key', { authorization: 'sk-ann' }, 401, 'invalid access token'],
    ['an API key after Bearer', { authorization: 'Bearer sk-ann' }, 401, 'invalid access token'],
    ['no Gateway-User', { 'gateway-user': undefined }, 401, 'New-Api-User header not provided'],
    [
      "another's id in the legacy header alone",
      { 'gateway-user': undefined, 'new-api-user': '1' },
      401,
      'does not match',
    ],
    ["another's id in the legacy header beside its own", { 'new-api-user': '1' }, 401, 'does not match'],
    [
      "another's id beside its own in the legacy header",
      { 'gateway-user': '1', 'new-api-user': '2' },
      401,
      'does not match',
    ],
    ["another's id", { 'gateway-user': '1' }, 401, 'does not match'],
    ['an invalid id', { 'gateway-user': '2e0' }, 401, 'expected the id of a user'],
  ])(
    'a management request with wrong or missing credentials is refused: %s',
    async (_, headers, status, message) => {
      const answer = await self(ANN, headers)
      expect(answer).toMatchObject({ status, success: false })
      expect(answer.message).toContain(message)
      expect(answer.body).not.toHaveProperty('data')
    },
  )

  test('a management request with the access token of a banned user is a 403', async () => {
    expect(await self(BAN)).toMatchObject({
      status: 403,
      success: false,
      message: 'this user has been banned',
    })
  })
})
