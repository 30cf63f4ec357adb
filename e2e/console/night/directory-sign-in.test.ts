import { stringify } from 'yaml'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type RealProvider, startRealProvider } from '../../../test/fixtures/real-oidc.ts'
import { withoutBrowser } from '../chromium.ts'
import { type ConsoleStage, startConsoleStage } from '../console-stage.ts'

const CLIENT = { id: 'sluice', secret: 'the-secret-of-the-client' }

describe.skipIf(withoutBrowser())('signing in through a directory in a browser', () => {
  let stage: ConsoleStage
  let provider: RealProvider
  beforeAll(async () => {
    stage = await startConsoleStage()
    const { url } = stage.gateway
    // A different site from the gateway's, so that cookies are sent as between two companies.
    provider = await startRealProvider(
      { ...CLIENT, redirectUri: `${url}/api/user/oidc/corp/callback`, afterLogout: `${url}/login` },
      'localhost',
    )
    await declare({})
  })
  afterAll(async () => {
    await stage?.close()
    await provider?.[Symbol.asyncDispose]()
  })

  const declare = (login: object): Promise<void> => {
    const { issuer } = provider
    const corp = { name: 'corp', issuer, client_id: CLIENT.id, client_secret: CLIENT.secret }
    return stage.declare(stringify({ login: { oidc: [corp], ...login } }))
  }

  test('a directory sign-in returns to the requested page, and signing out ends the sessions of the gateway and of the provider', async () => {
    provider.people.set('p1', { preferred_username: 'pia', name: 'Pia P.' })
    provider.who = 'p1'
    const page = await stage.open(undefined, '/logs?period=30d')
    await page.getByRole('link', { name: 'Sign in with corp' }).click()
    await page.getByRole('navigation', { name: 'Main' }).waitFor()
    expect(page.url()).toBe(`${stage.gateway.url}/logs?period=30d`)
    const cookies = await page.context().cookies(stage.gateway.url)
    const session = cookies.find(({ name }) => name === 'session')
    expect(session).toMatchObject({ httpOnly: true, sameSite: 'Strict' })

    await page.getByRole('button', { name: 'Account menu' }).filter({ hasText: 'Pia P.' }).click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
    // The provider asks whether to end its session, too.
    await page.getByRole('button', { name: 'Yes, sign me out' }).click()
    await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor()
    expect(page.url()).toBe(`${stage.gateway.url}/login`)
    const replay = await fetch(`${stage.gateway.url}/api/user/self`, {
      headers: { cookie: `session=${session?.value}` },
    })
    expect(replay.status).toBe(401)
    await page.close()
  })

  test('after the end of a session, a sign-in through the directory in another tab continues the form that is open', async () => {
    provider.people.set('p6', { preferred_username: 'petra' })
    provider.who = 'p6'
    const page = await stage.open(undefined, '/keys?new=1', { isAlone: true })
    await page.getByRole('link', { name: 'Sign in with corp' }).click()
    await page.getByRole('textbox', { name: 'Name' }).fill('kept in the form')
    await page.context().clearCookies({ name: 'session' })
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    const dialog = page.getByRole('dialog', { name: 'Session ended' })
    await dialog.getByRole('link', { name: 'Sign in with corp' }).click()
    await page.getByRole('dialog', { name: 'Key created' }).waitFor()
    await page.context().close()
  })

  test('a directory identity is linked and unlinked on the account page', async () => {
    provider.people.set('p2', { preferred_username: 'bea-at-corp' })
    provider.who = 'p2'
    const page = await stage.open('admin', '/account')
    const section = page.getByRole('region', { name: 'Directory sign-in' })
    await section.getByRole('button', { name: 'Link corp' }).click()
    const row = section.getByRole('listitem').filter({ hasText: 'p2' })
    await row.waitFor()
    expect(page.url()).toBe(`${stage.gateway.url}/account`)

    const other = await stage.open(undefined, '/')
    await other.getByRole('link', { name: 'Sign in with corp' }).click()
    await other.getByRole('button', { name: 'Account menu' }).filter({ hasText: 'bea' }).waitFor()
    await other.close()

    await row.getByRole('button', { name: 'Unlink' }).click()
    const dialog = page.getByRole('dialog', { name: 'Unlink identity' })
    await dialog.getByRole('button', { name: 'Unlink' }).click()
    await row.waitFor({ state: 'detached' })
    await page.close()
  })

  test('an administrator ends the directory identity of a user, who then cannot sign in with it', async () => {
    provider.people.set('p4', { preferred_username: 'otto' })
    provider.who = 'p4'
    const user = await stage.open(undefined, '/keys')
    await user.getByRole('link', { name: 'Sign in with corp' }).click()
    await user.getByRole('heading', { level: 1, name: 'API keys' }).waitFor()
    const { items } = await stage.api<{ items: { id: number }[] }>('GET', '/api/user/search?keyword=otto')
    // An identity that is the only way to an account cannot be ended.
    await stage.api('PUT', '/api/user/', { id: items[0]?.id, password: 'a password of otto' })
    const page = await stage.open('admin', `/users/${items[0]?.id}`)
    const identities = page.getByRole('region', { name: 'Identities' })
    await identities.getByRole('row', { name: /p4/ }).getByRole('button', { name: 'Unlink' }).click()
    const dialog = page.getByRole('dialog', { name: 'Unlink' })
    await dialog.getByText('“otto” cannot sign in with it any more').waitFor()
    await dialog.getByRole('button', { name: 'Unlink' }).click()
    await identities.getByText('No identity provider opens this account.').waitFor()
    await page.close()
    // The session has ended, and the name belongs to an account that the identity no longer opens.
    await user.goto('/')
    await user.getByRole('link', { name: 'Sign in with corp' }).click()
    await user.getByRole('heading', { level: 1, name: 'Sign-in refused' }).waitFor()
    await user.close()
  })

  test('a user who signs in through a directory is not offered to set a password', async () => {
    provider.people.set('p5', { preferred_username: 'paula' })
    provider.who = 'p5'
    const page = await stage.open(undefined, '/keys')
    await page.getByRole('link', { name: 'Sign in with corp' }).click()
    await page.getByRole('heading', { level: 1, name: 'API keys' }).waitFor()
    expect(await page.getByRole('link', { name: 'Set a password' }).count()).toBe(0)
    await page.close()
  })

  test('a refused directory sign-in ends on a page with the reason for the refusal and a link back to the console', async () => {
    provider.people.set('p3', { preferred_username: 'root' })
    provider.who = 'p3'
    const page = await stage.open(undefined, '/')
    await page.getByRole('link', { name: 'Sign in with corp' }).click()
    await page.getByRole('heading', { level: 1, name: 'Sign-in refused' }).waitFor()
    expect(await page.getByRole('main').innerText()).toMatch(/"root" is taken|already/)
    await page.getByRole('link', { name: 'Back to the console' }).click()
    await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor()
    await page.close()
  })

  test('the sign-in page offers the directory and access tokens, but no password field, where passwords are disabled', async () => {
    await declare({ password: false })
    const page = await stage.open(undefined, '/login')
    await page.getByRole('link', { name: 'Sign in with corp' }).waitFor()
    await page.getByRole('textbox', { name: 'Access token' }).waitFor()
    expect(await page.getByRole('button', { name: 'Use a password' }).count()).toBe(0)
    expect(await page.getByRole('textbox', { name: 'Username' }).count()).toBe(0)
    await page.close()
  })

  test('directory sign-ins cause no errors in the browser, in particular no violation of the content security policy', () => {
    expect(stage.complaints).toEqual([])
  })
})
