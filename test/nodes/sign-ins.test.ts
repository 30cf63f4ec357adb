import { Client } from 'pg'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { Browser } from '../fixtures/browser.ts'
import { ROOT, user } from '../fixtures/configuration.ts'
import { logIn, sessionHeaders } from '../fixtures/console.ts'
import { patientProgram } from '../fixtures/patient-program.ts'
import { startScriptedProvider } from '../fixtures/scripted-oidc.ts'
import type { Engine } from '../stores/engines.ts'
import { SHARED, setNodes } from './fixture.ts'

const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }

const ATTACKER = '192.0.2.1'
const OWNER = '203.0.113.7'
const BURST = 120
const PASSWORD = 'correct horse'

/** A node that believes forwarded addresses, and has a user with a password. */
async function addressedNode(engine: Engine) {
  const configure = () => ({
    options: { trusted_proxies: ['127.0.0.1'] },
    rate_limits: { global: { requests: 0 }, critical: { requests: 0 } },
    users: [ROOT, user(2, 'ann', [])],
  })
  // Sign-ins wait for a lock until the whole burst has arrived.
  const nodes = await setNodes(engine, 1, configure, { program: patientProgram })
  const url = nodes.gateways[0]?.url ?? ''
  const root = { id: 1, accessToken: ROOT.access_token }
  await manage(url, root, 'PUT /api/user/', { id: 2, password: PASSWORD })
  const signIn = (username: string, from: string) =>
    logIn(url, { username, password: PASSWORD }, { 'x-forwarded-for': from })
  return { ...nodes, signIn }
}

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
    const env = { GATEWAY_SECRET: 'one-secret-for-both-nodes' }
    const { gateways, database } = await setNodes(engine, 2, () => config, { env, program: patientProgram })
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
  })

  test('a burst of sign-ins from one address leaves the database free for one from another address', async () => {
    const { database, signIn } = await addressedNode(engine)
    const locking = new Client({ connectionString: database.place })
    locking.on('error', () => {})
    await locking.connect()
    await locking.query('begin')
    await locking.query('lock table users in access exclusive mode')
    let refused = 0
    let checked = 0
    const burst = Array.from({ length: BURST }, async (_, n) => {
      const { status } = await signIn(`nobody ${n}`, ATTACKER)
      if (status === 503) refused += 1
      else if (status === 401) checked += 1
    })
    // Four are in the database and 100 wait, so all have arrived when the others are refused.
    await vi.waitFor(() => expect(refused).toBe(BURST - 104), { timeout: 60_000, interval: 50 })
    const owner = signIn('ann', OWNER)
    // Takes the place of the burst's last one that waits.
    await vi.waitFor(() => expect(refused).toBe(BURST - 103), { timeout: 60_000, interval: 50 })
    await locking.end()
    expect((await owner).status).toBe(200)
    // Those beside it, in its turn and in the turn before, and answers that were not read yet.
    expect(checked).toBeLessThanOrEqual(BURST / 4)
    await Promise.all(burst)
    expect(checked).toBe(103)
  })
})
