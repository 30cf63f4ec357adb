import { describe, expect, onTestFinished, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { Browser } from '../fixtures/browser.ts'
import { ROOT, user } from '../fixtures/configuration.ts'
import { logIn, sessionHeaders } from '../fixtures/console.ts'
import { startScriptedProvider } from '../fixtures/scripted-oidc.ts'
import { SHARED, setNodes } from './fixture.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }

describe.each(SHARED)('sign-ins at two nodes on $name', (engine) => {
  test('an OIDC sign-in may begin at one node and end once at another; its session begins and ends on both nodes', async () => {
    const provider = await startScriptedProvider()
    onTestFinished(() => provider[Symbol.asyncDispose]())
    const client = { name: 'corp', issuer: provider.issuer, client_id: 'sluice', client_secret: 'secret' }
    const config = {
      rate_limits: { global: { requests: 0 } },
      users: [ROOT, user(2, 'ann', [], { access_token: ANN.accessToken })],
      login: { oidc: [client] },
    }
    const { gateways, database } = await setNodes(engine, 2, () => config, {
      GATEWAY_SECRET: 'one-secret-for-both-nodes',
    })
    const urls = gateways.map(({ url }) => url)
    const [one = '', two = ''] = urls
    const as = (url: string, cookie: string, request: Parameters<typeof manage>[2], body?: object) =>
      manage<Record<string, unknown>>(url, ANN, request, body, {
        ...sessionHeaders(cookie),
        'gateway-user': undefined,
      })

    provider.person = { sub: 'person-0', preferred_username: 'pam' }
    const tabs = await Promise.all(
      urls.map(async (url) => {
        const tab = new Browser()
        const back = provider.authorize(await tab.locationOf(`${url}/api/user/oidc/corp`))
        return { tab, back }
      }),
    )
    const ends = await Promise.all(tabs.map(({ tab, back }) => tab.get(back)))
    expect(ends.map(({ status }) => status)).toEqual([302, 302])

    provider.person = { sub: 'person-1', preferred_username: 'pat' }
    const browser = new Browser()
    const callback = provider.authorize(await browser.locationOf(`${one}/api/user/oidc/corp`))
    const elsewhere = callback.replace(one, two)
    const pending = new Map(browser.cookies)
    const first = await browser.get(elsewhere)
    expect([first.status, browser.cookies.has('session')]).toEqual([302, true])
    const thief = new Browser()
    for (const [name, value] of pending) thief.cookies.set(name, value)
    for (const url of [callback, elsewhere]) expect((await thief.get(url)).status).toBe(401)
    const { cookie: pats } = browser.session
    for (const url of urls)
      expect((await as(url, pats, 'GET /api/user/self')).data).toMatchObject({ username: 'pat', quota: 0 })
    const identities = 'select subject, username from identities join users on id = user_id order by 1'
    expect(await database.sql(identities)).toEqual([
      { subject: 'person-0', username: 'pam' },
      { subject: 'person-1', username: 'pat' },
    ])

    const { cookie } = await logIn(one, { access_token: ANN.accessToken })
    const { cookie: other } = await logIn(two, { access_token: ANN.accessToken })
    const password = { password: 'correct horse' }
    expect((await as(two, cookie, 'PUT /api/user/self', password)).status).toBe(200)
    expect((await as(one, cookie, 'GET /api/user/self')).data).toMatchObject({ has_password: true })
    expect((await as(one, other, 'GET /api/user/self')).status).toBe(401)
    await manage(one, ANN, 'GET /api/user/token')
    expect((await as(two, cookie, 'GET /api/user/self')).status).toBe(401)
    expect((await logIn(two, { username: 'ann', ...password })).status).toBe(200)
  }, 300_000)
})
