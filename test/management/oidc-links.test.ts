import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { Browser } from '../fixtures/browser.ts'
import { call, type FullResponse } from '../fixtures/client.ts'
import { ROOT, user } from '../fixtures/configuration.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { type ScriptedProvider, startScriptedProvider } from '../fixtures/scripted-oidc.ts'

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const PASSWORD = 'the password of everybody'
const PATH = '/api/user/self/identities'

let gateway: RunningGateway
let provider: ScriptedProvider

beforeAll(async () => {
  provider = await startScriptedProvider()
  const people = ['ann', 'bob', 'cid'].map((name, index) =>
    user(2 + index, name, [], { access_token: `access-token-of-${name}` }),
  )
  gateway = await startGateway({
    config: {
      rate_limits: { global: { requests: 0 }, critical: { requests: 0 }, console: { requests: 0 } },
      users: [ROOT, ...people],
      login: {
        oidc: [
          { name: 'corp', issuer: provider.issuer, client_id: 'sluice', client_secret: 'the-client-secret' },
        ],
      },
    },
  })
  for (const { id } of people) {
    const password = { id, password: PASSWORD, keep_access_tokens: true }
    await manage(gateway.url, ROOT_ACCOUNT, 'PUT /api/user/', password)
  }
})
afterAll(async () => {
  await gateway?.discard()
  await provider?.[Symbol.asyncDispose]()
})

/** A browser in which this user has signed in by password. */
async function signedIn(username: string): Promise<Browser> {
  const browser = new Browser()
  const body = { username, password: PASSWORD }
  const answer = await call(gateway.url, body, { method: 'POST', path: '/api/user/login' })
  expect(answer.status, answer.text).toBe(200)
  browser.keep(answer)
  return browser
}

async function post(browser: Browser, headers: Readonly<Record<string, string>> = {}): Promise<FullResponse> {
  const answer = await call(
    gateway.url,
    { provider: 'corp', next: '/profile' },
    { method: 'POST', path: PATH, headers: { cookie: browser.session.cookie, ...headers } },
  )
  browser.keep(answer)
  return answer
}

/** Starts to link this person's identity; resolves to the address at which the sign-in ends. */
async function callbackOf(browser: Browser, sub: string, claims: object = {}): Promise<string> {
  provider.person = { sub, preferred_username: sub, ...claims }
  const answer = await post(browser)
  expect(answer.status, answer.text).toBe(200)
  return provider.authorize(JSON.parse(answer.text).data.url)
}

async function signIn(sub: string, claims: object = {}): Promise<Browser> {
  provider.person = { sub, preferred_username: sub, ...claims }
  const browser = new Browser()
  await browser.get(provider.authorize(await browser.locationOf(`${gateway.url}/api/user/oidc/corp`)))
  return browser
}

async function self(browser: Browser, path = '/api/user/self') {
  const { status, text } = await call(gateway.url, undefined, {
    method: 'GET',
    path,
    headers: { cookie: browser.session.cookie },
  })
  return { status, data: JSON.parse(text).data }
}

describe('a signed-in user', () => {
  test('a signed-in user can link an OIDC identity, and then sign in with it to the same account', async () => {
    const browser = await signedIn('ann')
    const before = browser.cookies.get('session')
    const callback = await callbackOf(browser, 'ann-at-corp', { preferred_username: 'somebody' })
    const answer = await browser.get(callback)
    expect([answer.status, answer.headers.location]).toEqual([302, '/profile'])
    // The session that started the link continues, and no other one begins.
    expect(browser.cookies.get('session')).toBe(before)
    expect((await self(browser, PATH)).data).toEqual([
      { issuer: provider.issuer, subject: 'ann-at-corp', provider: 'corp', created_time: expect.any(Number) },
    ])
    expect((await self(await signIn('ann-at-corp'))).data).toMatchObject({ id: 2, username: 'ann' })
    await signedIn('ann')
    const log = await manage(gateway.url, ROOT_ACCOUNT, 'GET /api/audit?kind=user&action=user.update')
    expect(log.data).toMatchObject({
      items: expect.arrayContaining([
        expect.objectContaining({ changes: [{ field: 'oidc_id', before: '', after: 'ann-at-corp' }] }),
      ]),
    })
  })

  test('a user may link several OIDC identities, and linking the same one again has no effect', async () => {
    const browser = await signedIn('ann')
    for (const sub of ['ann-2', 'ann-2']) {
      const answer = await browser.get(await callbackOf(browser, sub))
      expect(answer.status).toBe(302)
    }
    const { data } = await self(browser, PATH)
    expect(data.filter(({ subject }: { subject: string }) => subject === 'ann-2')).toHaveLength(1)
    expect((await self(await signIn('ann-2'))).data.id).toBe(2)
    expect((await self(await signIn('ann-at-corp'))).data.id).toBe(2)
  })
})

describe('attempts to link an identity', () => {
  test('an OIDC sign-in with the name or e-mail address of a local user does not link the identity to that user', async () => {
    const browser = await signIn('stranger', {
      preferred_username: 'cid',
      email: 'cid@example.com',
      email_verified: true,
    })
    expect(browser.cookies.has('session')).toBe(false)
    expect((await self(await signedIn('cid'), PATH)).data).toEqual([])
  })

  test('a page of another site cannot link an identity', async () => {
    const browser = await signedIn('cid')
    for (const headers of [{ 'sec-fetch-site': 'cross-site' }, { origin: 'https://evil.example' }]) {
      const answer = await post(browser, headers)
      expect([answer.status, JSON.parse(answer.text).code]).toEqual([403, 'other_site'])
      expect(answer.headers['set-cookie']).toBeUndefined()
    }
    expect(
      (await call(gateway.url, undefined, { method: 'GET', path: `${PATH}?provider=corp` })).status,
    ).toBe(401)
  })

  test("the end of an attacker's sign-in in the victim's browser does not link an identity", async () => {
    const attacker = await signedIn('bob')
    const callback = await callbackOf(attacker, 'bob-at-corp')
    const victim = await signedIn('cid')
    expect((await victim.get(callback)).status).toBe(401)
    // The same holds where the victim links an identity at the same time.
    const own = new URL(await callbackOf(victim, 'cid-at-corp'))
    own.searchParams.set('code', new URL(callback).searchParams.get('code') ?? '')
    expect((await victim.get(own.href)).status).toBe(401)
    expect((await self(victim, PATH)).data).toEqual([])
  })

  test('a request with an access token, which any program may have, cannot link an identity', async () => {
    const headers = { authorization: 'access-token-of-cid', 'gateway-user': '4' }
    const options = { method: 'POST', path: PATH, headers }
    expect((await call(gateway.url, { provider: 'corp' }, options)).status).toBe(401)
    expect((await call(gateway.url, undefined, { ...options, method: 'GET' })).status).toBe(200)
  })

  test('an OIDC identity that belongs to another user cannot be linked', async () => {
    const browser = await signedIn('cid')
    for (const sub of ['ann-at-corp', 'newcomer']) {
      if (sub === 'newcomer') await signIn(sub)
      const answer = await browser.get(await callbackOf(browser, sub))
      expect([answer.status, JSON.parse(answer.text).code]).toEqual([403, 'sign_in_refused'])
    }
    expect((await self(browser, PATH)).data).toEqual([])
    expect((await self(await signIn('ann-at-corp'))).data.id).toBe(2)
    expect((await self(await signIn('newcomer'))).data.username).toBe('newcomer')
  })

  test('an OIDC identity is not linked if the session that began the linking has ended in the meantime', async () => {
    const browser = await signedIn('cid')
    const callback = await callbackOf(browser, 'late')
    const out = await call(gateway.url, undefined, {
      method: 'GET',
      path: '/api/user/logout',
      headers: { cookie: browser.session.cookie },
    })
    expect(out.status).toBe(200)
    expect((await browser.get(callback)).status).toBe(401)
    expect((await self(await signedIn('cid'), PATH)).data).toEqual([])
  })

  test('an identity of an identity provider that does not exist cannot be linked', async () => {
    const browser = await signedIn('cid')
    const options = { method: 'POST', path: PATH, headers: { cookie: browser.session.cookie } }
    expect((await call(gateway.url, { provider: 'none' }, options)).status).toBe(404)
    expect((await call(gateway.url, {}, options)).status).toBe(400)
  })
})

describe('unlinking an identity', () => {
  const without = (browser: Browser, subject: string, issuer = provider.issuer): Promise<FullResponse> =>
    call(gateway.url, undefined, {
      method: 'DELETE',
      path: `${PATH}?${new URLSearchParams({ issuer, subject }).toString()}`,
      headers: { cookie: browser.session.cookie },
    })

  test("after its user unlinks an identity, the user's other sessions end, and the identity no longer opens the account", async () => {
    const browser = await signedIn('ann')
    const byIdentity = await signIn('ann-2')
    expect((await without(browser, 'ann-2')).status).toBe(200)
    expect((await self(browser, PATH)).data).toEqual([expect.objectContaining({ subject: 'ann-at-corp' })])
    expect((await self(byIdentity)).status).toBe(401)
    const { data } = await self(await signIn('ann-2'))
    expect(data.username).toBe('ann-2')
    const log = await manage(gateway.url, ROOT_ACCOUNT, 'GET /api/audit?kind=user&action=user.update')
    expect(log.data).toMatchObject({
      items: expect.arrayContaining([
        expect.objectContaining({ changes: [{ field: 'oidc_id', before: 'ann-2', after: 'ann-at-corp' }] }),
      ]),
    })
  })

  test("unlinking an identity that does not belong to the user's account is a 404, and changes nothing", async () => {
    const browser = await signedIn('cid')
    for (const [subject, issuer] of [
      ['ann-at-corp'],
      ['none'],
      ['ann-at-corp', 'https://other.example'],
    ] as const)
      expect((await without(browser, subject, issuer)).status).toBe(404)
    expect((await self(await signIn('ann-at-corp'))).data.id).toBe(2)
  })

  test('an identity that is the only way of its user to sign in cannot be unlinked', async () => {
    const browser = await signIn('only-at-corp')
    const refused = await without(browser, 'only-at-corp')
    expect([refused.status, JSON.parse(refused.text).message]).toEqual([
      400,
      expect.stringContaining('the only way to sign in'),
    ])
    const { data } = await self(browser)
    await manage(gateway.url, ROOT_ACCOUNT, 'PUT /api/user/', { id: data.id, password: PASSWORD })
    const again = await signedIn('only-at-corp')
    expect((await without(again, 'only-at-corp')).status).toBe(200)
  })
})

test('an OIDC sign-in that is refused returns a page to a browser, and JSON to a program', async () => {
  const refusedOf = async (headers: Readonly<Record<string, string>>): Promise<FullResponse> => {
    const browser = await signedIn('cid')
    const callback = await callbackOf(browser, 'ann-at-corp')
    return browser.get(callback, headers)
  }
  const program = await refusedOf({ accept: '*/*' })
  expect([program.status, JSON.parse(program.text).code]).toEqual([403, 'sign_in_refused'])
  const accept = 'text/html,application/xhtml+xml,*/*;q=0.8'
  const page = await refusedOf({ accept })
  expect([page.status, page.headers['content-type']]).toEqual([403, 'text/html; charset=utf-8'])
  expect(page.headers['content-security-policy']).toContain("default-src 'none'")
  expect(page.text).toContain('This identity belongs to another user here.')
  expect(page.text).toContain(page.headers['x-request-id'])
  const chinese = await refusedOf({ accept, 'accept-language': 'zh-CN,en;q=0.5' })
  expect(chinese.text).toContain('<h1>登录被拒绝</h1>')
})
