import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { Browser } from '../fixtures/browser.ts'
import { call } from '../fixtures/client.ts'
import { ROOT, token, user } from '../fixtures/configuration.ts'
import { logIn } from '../fixtures/console.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { type RealProvider, startRealProvider } from '../fixtures/real-oidc.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const PUBLIC_URL = 'https://ai.example.com'
const CLIENT = {
  id: 'sluice',
  secret: 'the-secret-of-the-client',
  redirectUri: `${PUBLIC_URL}/api/user/oidc/corp/callback`,
  afterLogout: `${PUBLIC_URL}/login`,
}

let gateway: RunningGateway
let provider: RealProvider

const configuration = (more: object = {}, login: object = {}) => ({
  options: { public_url: PUBLIC_URL },
  rate_limits: { global: { requests: 0 }, critical: { requests: 0 } },
  groups: { staff: { open: false }, lab: {} },
  users: [ROOT, user(2, 'local', [token('local')], { access_token: 'access-token-of-local' })],
  login: {
    oidc: [
      {
        name: 'corp',
        issuer: provider.issuer,
        client_id: CLIENT.id,
        client_secret: CLIENT.secret,
        group_claim: 'groups',
        groups: { researchers: 'lab', everybody: 'staff' },
        admins: ['operators'],
        ...more,
      },
    ],
    ...login,
  },
})

beforeAll(async () => {
  provider = await startRealProvider(CLIENT)
  gateway = await startGateway({ config: configuration() })
})
afterAll(async () => {
  await gateway?.discard()
  await provider?.[Symbol.asyncDispose]()
})

const start = (query = ''): string => `${gateway.url}/api/user/oidc/corp${query}`

/** Follows the provider's pages back to the gateway's address. */
async function throughProvider(browser: Browser, query = ''): Promise<string> {
  const back = await provider.visit(browser, await browser.locationOf(start(query)))
  expect(back.startsWith(`${CLIENT.redirectUri}?`)).toBe(true)
  return back.replace(PUBLIC_URL, gateway.url)
}

/** Signs a person in with a new browser. */
async function signIn(subject: string, query = '') {
  provider.who = subject
  const browser = new Browser()
  const answer = await browser.get(await throughProvider(browser, query))
  const self = () =>
    manage<Record<string, unknown>>(
      gateway.url,
      { id: 0, accessToken: '' },
      'GET /api/user/self',
      undefined,
      {
        ...browser.session,
        'gateway-user': undefined,
      },
    )
  return { browser, answer, self }
}

const messageOf = ({ text }: { readonly text: string }): string => JSON.parse(text).message

describe('a sign-in at an identity provider', () => {
  test('a first OIDC sign-in creates a user from the claims, begins a session, and continues at the requested path', async () => {
    provider.people.set('p1', { preferred_username: 'pia', name: 'Pia P.', groups: ['everybody'] })
    const { answer, self, browser } = await signIn('p1', '?next=%2Fusage%3Fperiod%3D7d')
    expect([answer.status, answer.headers.location]).toEqual([302, '/usage?period=7d'])
    expect(answer.headers['set-cookie']?.[0]).toMatch(
      /^session=[\w-]{43}; .*HttpOnly; Secure; SameSite=Strict/,
    )
    expect(answer.headers['cache-control']).toContain('no-store')
    expect((await self()).data).toMatchObject({
      username: 'pia',
      display_name: 'Pia P.',
      role: 1,
      group: 'staff',
      quota: 0,
      has_password: false,
      oidc_id: 'p1',
    })
    // The cookie of the sign-in has ended with it.
    expect([...browser.cookies.keys()].filter((name) => name.startsWith('sign-in-'))).toEqual([])
  })

  test('a sign-in at an identity provider is in the audit log, with the user that it creates', async () => {
    provider.people.set('p9', { preferred_username: 'zoe' })
    await signIn('p9')
    const { data } = await manage<{ items: object[] }>(
      gateway.url,
      ROOT_ACCOUNT,
      'GET /api/audit?page_size=2',
    )
    expect(data.items).toMatchObject([
      {
        action: 'session.begin',
        actor: 'zoe',
        via: 'console',
        object: { name: 'zoe' },
        changes: [{ field: 'method', after: 'identity' }],
      },
      { action: 'user.create', via: 'console', object: { kind: 'user', name: 'zoe' } },
    ])
  })

  test('an OIDC sign-in finds the same user again, also after the name at the provider or in the gateway changed', async () => {
    provider.people.set('p2', { preferred_username: 'bea' })
    const first = (await (await signIn('p2')).self()).data
    provider.people.set('p2', { preferred_username: 'beatrix' })
    await manage(gateway.url, ROOT_ACCOUNT, 'PUT /api/user/', { id: first['id'] as number, username: 'bee' })
    expect((await (await signIn('p2')).self()).data).toMatchObject({ id: first['id'], username: 'bee' })
  })

  test("each OIDC sign-in updates the user's role and group from the groups that the identity provider states", async () => {
    const rights = async (groups: unknown) => {
      provider.people.set('p3', { preferred_username: 'cy', groups })
      const { role, group } = (await (await signIn('p3')).self()).data
      return [role, group]
    }
    expect(await rights(['everybody', 'researchers', 'operators'])).toEqual([10, 'lab'])
    expect(await rights(['everybody'])).toEqual([1, 'staff'])
    expect(await rights('operators')).toEqual([10, 'default'])
    expect(await rights(['unknown'])).toEqual([1, 'default'])
    expect(await rights(['operators', 7, null])).toEqual([10, 'default'])
    // A missing or malformed claim removes rights.
    expect(await rights(undefined)).toEqual([1, 'default'])
    expect(await rights({ operators: true })).toEqual([1, 'default'])
  })

  test.each([
    ['is missing', {}],
    ['is no text', { preferred_username: 7 }],
    ['is too long', { preferred_username: 'x'.repeat(65) }],
    ['has a control character', { preferred_username: 'a\nb' }],
    ['is empty', { preferred_username: '' }],
  ])(
    'a first OIDC sign-in is a 403, and creates no user, if the claim with the user name %s',
    async (why, claims) => {
      provider.people.set(`nameless ${why}`, claims)
      const { answer, browser } = await signIn(`nameless ${why}`)
      expect([answer.status, messageOf(answer)]).toEqual([
        403,
        expect.stringContaining('"preferred_username"'),
      ])
      expect(browser.cookies.has('session')).toBe(false)
    },
  )

  test('an OIDC sign-in of a disabled user is a 403, and one of a deleted user creates a new user', async () => {
    provider.people.set('p5', { preferred_username: 'eli' })
    const { id } = (await (await signIn('p5')).self()).data as { id: number }
    await manage(gateway.url, ROOT_ACCOUNT, 'POST /api/user/manage', { id, action: 'disable' })
    const { answer } = await signIn('p5')
    expect([answer.status, messageOf(answer)]).toEqual([403, 'this user has been banned'])
    await manage(gateway.url, ROOT_ACCOUNT, `DELETE /api/user/${id}`)
    const again = (await (await signIn('p5')).self()).data
    expect(again).toMatchObject({ username: 'eli' })
    expect(again['id']).not.toBe(id)
  })

  test('an OIDC sign-in in two tabs of a browser at once succeeds in both', async () => {
    provider.people.set('p6', { preferred_username: 'flo' })
    provider.who = 'p6'
    const browser = new Browser()
    const tabs = [await throughProvider(browser), await throughProvider(browser)]
    const answers = await Promise.all(tabs.map((tab) => browser.get(tab)))
    expect(answers.map(({ status }) => status)).toEqual([302, 302])
  })

  test('an OIDC sign-in that began before a restart of the gateway can be completed afterwards', async () => {
    provider.people.set('p7', { preferred_username: 'gus' })
    provider.who = 'p7'
    const browser = new Browser()
    const back = await throughProvider(browser)
    await gateway.restart()
    expect((await browser.get(back)).status).toBe(302)
  })

  test('a sign-out also ends the session at the identity provider', async () => {
    provider.people.set('p8', { preferred_username: 'hal' })
    const { browser, self } = await signIn('p8')
    const answer = await call(gateway.url, undefined, {
      path: '/api/user/logout',
      headers: { cookie: browser.session.cookie },
    })
    const { data } = JSON.parse(answer.text)
    const url = new URL(data.logout_url)
    expect(url.origin).toBe(provider.issuer)
    expect(url.searchParams.get('post_logout_redirect_uri')).toBe(CLIENT.afterLogout)
    expect(url.searchParams.get('id_token_hint')).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+$/)
    // The provider accepts the request: it shows its page.
    expect((await browser.get(url.href)).status).toBe(200)
    expect((await self()).status).toBe(401)
  })

  test('a sign-in at an unknown identity provider is a 404, and one with an invalid provider name a 400', async () => {
    for (const path of ['/api/user/oidc/nobody', '/api/user/oidc/nobody/callback'])
      expect((await new Browser().get(gateway.url + path)).status).toBe(404)
    expect((await new Browser().get(`${gateway.url}/api/user/oidc/No_body`)).status).toBe(400)
  })
})

describe('the settings of a provider', () => {
  test('GET /api/status names the identity providers before a sign-in, without their issuers and secrets', async () => {
    const { text } = await call(gateway.url, undefined, { method: 'GET', path: '/api/status' })
    expect(JSON.parse(text).data).toMatchObject({
      password_login_enabled: true,
      oidc_enabled: true,
      oidc_providers: ['corp'],
    })
    expect(text).not.toContain(provider.issuer)
  })

  test('an identity provider with create: false lets known users sign in, and refuses unknown ones', async () => {
    provider.people.set('p9', { preferred_username: 'ida' })
    await signIn('p9')
    provider.people.set('p10', { preferred_username: 'jon' })
    await gateway.apply(configuration({ create: false }))
    expect((await signIn('p9')).answer.status).toBe(302)
    const { answer } = await signIn('p10')
    expect([answer.status, messageOf(answer)]).toEqual([403, expect.stringContaining('ask an administrator')])
    await gateway.apply(configuration())
    expect((await signIn('p10')).answer.status).toBe(302)
  })

  test('an identity provider without group_claim leaves group and role of its users to the gateway', async () => {
    await gateway.apply(configuration({ group_claim: undefined, groups: undefined, admins: undefined }))
    provider.people.set('p11', { preferred_username: 'kim', groups: ['operators', 'everybody'] })
    const { id } = (await (await signIn('p11')).self()).data as { id: number }
    await manage(gateway.url, ROOT_ACCOUNT, 'PUT /api/user/', { id, role: 10, group: 'staff' })
    expect((await (await signIn('p11')).self()).data).toMatchObject({ role: 10, group: 'staff' })
    await gateway.apply(configuration())
  })

  test('an OIDC sign-in with a wrong client secret is a 401', async () => {
    provider.people.set('p12', { preferred_username: 'lou' })
    await gateway.apply(configuration({ client_secret: 'another' }))
    expect((await signIn('p12')).answer.status).toBe(401)
    await gateway.apply(configuration())
  })

  test('with password: false, users can only sign in at an identity provider or by access token', async () => {
    await manage(gateway.url, ROOT_ACCOUNT, 'PUT /api/user/', {
      id: 2,
      password: 'correct horse',
      keep_access_tokens: true,
    })
    const credentials = { username: 'local', password: 'correct horse' }
    await gateway.apply(configuration({}, { password: false }))
    expect(await logIn(gateway.url, credentials)).toMatchObject({ status: 403, setCookie: '' })
    const status = await call(gateway.url, undefined, { method: 'GET', path: '/api/status' })
    expect(JSON.parse(status.text).data.password_login_enabled).toBe(false)
    expect((await logIn(gateway.url, { access_token: 'access-token-of-local' })).status).toBe(200)
    expect((await signIn('p1')).answer.status).toBe(302)
    await gateway.apply(configuration())
    expect((await logIn(gateway.url, credentials)).status).toBe(200)
  })
})
