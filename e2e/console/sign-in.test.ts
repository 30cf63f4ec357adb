import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { withoutBrowser } from './chromium.ts'
import { type ConsoleStage, PEOPLE, startConsoleStage } from './console-stage.ts'

const FIRST_LOAD_BYTES = 225_000

describe.skipIf(withoutBrowser())('signing in to the console', () => {
  let stage: ConsoleStage
  beforeAll(async () => {
    stage = await startConsoleStage()
  })
  afterAll(async () => {
    await stage?.close()
  })

  test('/ shows "Sign in", makes no requests to other origins, and transfers at most 225 kB without charts', async () => {
    const page = await stage.open(undefined, 'about:blank', { isAlone: true })
    const origins = new Set<string>()
    const paths: string[] = []
    page.on('request', (request) => {
      const { origin, pathname, protocol } = new URL(request.url())
      if (protocol !== 'data:') origins.add(origin)
      paths.push(pathname)
    })
    const sizes: Promise<number>[] = []
    page.on('requestfinished', (request) => {
      sizes.push(request.sizes().then(({ responseBodySize }) => responseBodySize))
    })
    await page.goto(`${stage.gateway.url}/`)
    await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor()
    await page.waitForLoadState('networkidle')
    expect(await page.title()).toBe('Sign in – Sluice')
    expect([...origins]).toEqual([stage.gateway.url])
    const moved = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
    const scripts = paths.filter((path) => path.endsWith('.js')).length
    console.info(`the page to sign in moved ${moved} bytes, with ${scripts} scripts`)
    expect(moved).toBeGreaterThan(50_000)
    expect(moved).toBeLessThanOrEqual(FIRST_LOAD_BYTES)
    expect(paths.filter((path) => /chart|playground/i.test(path))).toEqual([])
    await page.close()
  })

  test('root signs in with the access token, and a wrong token shows an error', async () => {
    const page = await stage.open(undefined, '/login')
    await page.getByRole('button', { name: 'Use an access token' }).click()
    const field = page.getByRole('textbox', { name: 'Access token' })
    expect(await field.getAttribute('type')).toBe('password')
    await field.fill('wrong')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('alert').filter({ hasText: 'This access token is not valid.' }).waitFor()
    await field.fill(PEOPLE.root.accessToken)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    await page.close()
  })

  test('after a sign-in by token a notice offers a password; once it is set it works, and the notice is gone', async () => {
    const page = await stage.open(undefined, '/login')
    await page.getByRole('button', { name: 'Use an access token' }).click()
    await page.getByRole('textbox', { name: 'Access token' }).fill(PEOPLE.root.accessToken)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('status').getByRole('link', { name: 'Set a password' }).click()
    await page.getByRole('textbox', { name: 'New password' }).fill('a password of root')
    await page.getByRole('button', { name: 'Set password' }).click()
    await page.getByRole('status').filter({ hasText: 'Password set' }).waitFor()
    await page.getByRole('link', { name: 'Set a password' }).waitFor({ state: 'detached' })
    await page.close()

    const again = await stage.open(undefined, '/login')
    await again.getByRole('textbox', { name: 'Username' }).fill('root')
    await again.getByRole('textbox', { name: 'Password' }).fill('a password of root')
    await again.getByRole('button', { name: 'Sign in' }).click()
    await again.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    expect(await again.getByRole('link', { name: 'Set a password' }).count()).toBe(0)
    await again.close()
  })

  test('a user who is disabled while signed in is informed at the next request, and signed out', async () => {
    await stage.api('POST', '/api/user/', {
      username: 'leaver',
      password: 'password of a leaver',
    })
    const page = await stage.open(undefined, '/login')
    const signIn = async (): Promise<void> => {
      await page.getByRole('textbox', { name: 'Username' }).fill('leaver')
      await page.getByRole('textbox', { name: 'Password' }).fill('password of a leaver')
      await page.getByRole('button', { name: 'Sign in' }).click()
    }
    await signIn()
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    await stage.api('POST', '/api/user/manage', { username: 'leaver', action: 'disable' })
    await page.getByRole('link', { name: 'Logs' }).click()
    await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor()
    const told = page
      .getByRole('alert')
      .filter({ hasText: 'This account is disabled. Ask an administrator.' })
    await told.waitFor()
    expect(await page.context().cookies()).toEqual([])
    await stage.api('POST', '/api/user/manage', { username: 'leaver', action: 'enable' })
    await signIn()
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    await stage.api('POST', '/api/user/manage', { username: 'leaver', action: 'disable' })
    await page.goto('/')
    await told.waitFor()
    expect(await page.context().cookies()).toEqual([])
    await page.close()
  })

  test('the error for a wrong sign-in is the same for a wrong user name and a wrong password', async () => {
    const page = await stage.open(undefined, '/login')
    const said = async (username: string, password: string): Promise<string> => {
      await page.getByRole('textbox', { name: 'Username' }).fill(username)
      await page.getByRole('textbox', { name: 'Password' }).fill(password)
      const answered = page.waitForResponse(/\/login$/)
      await page.getByRole('button', { name: 'Sign in' }).click()
      await answered
      return page.getByRole('alert').filter({ hasText: /\w/ }).innerText()
    }
    const wrongPassword = await said(PEOPLE.member.username, 'wrong password')
    expect(await said('nobody', 'wrong password')).toBe(wrongPassword)
    await page.getByRole('textbox', { name: 'Username' }).fill(PEOPLE.member.username)
    await page.getByRole('textbox', { name: 'Password' }).fill(PEOPLE.member.password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    await page.close()
  })

  test('the requested page is shown after the sign-in, and never another site', async () => {
    for (const [asked, shown] of [
      ['/logs?period=30d', '/logs?period=30d'],
      ['/login?next=https://evil.example', '/'],
      ['/login?next=//evil.example/keys', '/'],
    ] as const) {
      const page = await stage.open(undefined, asked)
      await page.getByRole('textbox', { name: 'Username' }).fill(PEOPLE.member.username)
      await page.getByRole('textbox', { name: 'Password' }).fill(PEOPLE.member.password)
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByRole('navigation', { name: 'Main' }).waitFor()
      expect(page.url()).toBe(`${stage.gateway.url}${shown}`)
      await page.close()
    }
  })

  test('a form that is submitted after the session has ended is saved exactly once, after the user has signed in again', async () => {
    const page = await stage.open('member', '/keys?new=1')
    await page.getByRole('textbox', { name: 'Name' }).fill('kept in the form')
    await page.context().clearCookies()
    const created: string[] = []
    page.on('response', (response) => {
      const isCreation = response.request().method() === 'POST' && /\/api\/token\//.test(response.url())
      if (isCreation) created.push(`${response.status()} ${new URL(response.url()).pathname}`)
    })
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    const dialog = page.getByRole('dialog', { name: 'Session ended' })
    await dialog.getByRole('textbox', { name: 'Password' }).fill(PEOPLE.member.password)
    await dialog.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('dialog', { name: 'Key created' }).waitFor()
    expect(created.filter((line) => line.endsWith('/api/token/'))).toEqual([
      '401 /api/token/',
      '200 /api/token/',
    ])
    await page.getByRole('button', { name: 'Done' }).click()
    await page.getByRole('link', { name: 'kept in the form' }).waitFor()
    await page.close()
  })

  test('a page that refreshes by itself shows that the session is over, and continues after the sign-in', async () => {
    const page = await stage.open('root', '/setup')
    await page.getByRole('list', { name: 'Setup steps' }).waitFor()
    await page.context().clearCookies()
    const dialog = page.getByRole('dialog', { name: 'Session ended' })
    await dialog.getByRole('button', { name: 'Use an access token' }).click()
    await dialog.getByRole('textbox', { name: 'Access token' }).fill(PEOPLE.root.accessToken)
    await dialog.getByRole('button', { name: 'Sign in' }).click()
    await dialog.waitFor({ state: 'detached' })
    await page.close()
  })

  test('after a sign-in, other tabs of this user continue, and those of another one begin anew as the new user', async () => {
    const page = await stage.open('root', '/keys', { isAlone: true })
    const menu = page.getByRole('button', { name: 'Account menu' })
    await menu.filter({ hasText: 'root' }).waitFor()
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByRole('textbox', { name: 'Name' }).fill('half done')
    const asked: string[] = []
    page.on('dialog', (dialog) => {
      asked.push(dialog.type())
      void dialog.dismiss()
    })
    const other = await page.context().newPage()
    const signIn = async (): Promise<void> => {
      await other.goto('/login')
      await other.getByRole('textbox', { name: 'Username' }).fill(PEOPLE.member.username)
      await other.getByRole('textbox', { name: 'Password' }).fill(PEOPLE.member.password)
      await other.getByRole('button', { name: 'Sign in' }).click()
      await other.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    }
    await signIn()
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    await menu.filter({ hasText: PEOPLE.member.username }).waitFor()
    // A changed form of the first user does not keep the tab.
    expect(asked).toEqual([])
    // The Overview requests by itself, and the question for a sign-in would be over the link.
    await page.getByRole('link', { name: 'Models', exact: true }).click()
    await page.getByRole('heading', { level: 1, name: 'Models' }).waitFor()
    await page.context().clearCookies()
    await page.getByRole('link', { name: 'API keys' }).click()
    const dialog = page.getByRole('dialog', { name: 'Session ended' })
    await dialog.waitFor()
    await signIn()
    await dialog.waitFor({ state: 'hidden' })
    await page.getByRole('table', { name: 'API keys' }).or(page.getByText('No keys yet')).waitFor()
    await page.context().close()
  })

  test('a sign-out everywhere ends sessions begun since, passes over one that has ended, and clears the tab', async () => {
    const credentials = { username: 'everywhere', password: 'password of everywhere' }
    await stage.api('POST', '/api/user/', credentials)
    const signIn = async (): Promise<string> => {
      const answer = await fetch(`${stage.gateway.url}/api/user/login`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(credentials),
      })
      return answer.headers.get('set-cookie')?.split(';')[0] ?? ''
    }
    const over = await signIn()
    const page = await stage.open(undefined, '/login?next=/account')
    await page.getByRole('textbox', { name: 'Username' }).fill(credentials.username)
    await page.getByRole('textbox', { name: 'Password' }).fill(credentials.password)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    const leave = page.getByRole('button', { name: 'Sign out everywhere' })
    await leave.waitFor()
    const since = await signIn()
    await page.evaluate(() => sessionStorage.setItem('playground', 'a conversation'))

    // A session ends between the list and its end here.
    await page.route('**/api/user/self/sessions/*', async (route) => {
      await fetch(`${stage.gateway.url}/api/user/logout`, { method: 'POST', headers: { cookie: over } })
      await route.continue()
    })
    await page.route('**/api/user/logout', (route) => route.fulfill({ status: 403, json: {} }))
    await leave.click()
    await page.getByRole('alert').filter({ hasText: /\w/ }).waitFor()
    // The list has what is left.
    await expect.poll(() => page.getByRole('button', { name: 'End session' }).count()).toBe(0)
    await page.unroute('**/api/user/logout')
    await leave.click()
    await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor()
    expect(await page.evaluate(() => sessionStorage.getItem('playground'))).toBeNull()
    const self = await fetch(`${stage.gateway.url}/api/user/self`, { headers: { cookie: since } })
    expect(self.status).toBe(401)
    await page.close()
  })

  test('a password is changed without a new sign-in, also while a page refreshes itself', async () => {
    const [username, first, second] = ['nia', 'the first password', 'the second password']
    await stage.api('POST', '/api/user/', { username, password: first })
    const page = await stage.open(undefined, '/login?next=/account')
    await page.getByRole('textbox', { name: 'Username' }).fill(username)
    await page.getByRole('textbox', { name: 'Password' }).fill(first)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByRole('textbox', { name: 'Current password' }).fill(first)
    await page.getByRole('textbox', { name: 'New password' }).fill(second)
    // The old session has ended, and the new one has not begun.
    const between = Promise.withResolvers<void>()
    await page.route('**/api/user/login', async (route) => {
      between.resolve()
      await refused
      await route.continue()
    })
    const refused = page.waitForResponse((response) => response.status() === 401)
    await page.getByRole('button', { name: 'Change password' }).click()
    await between.promise
    await page.getByRole('navigation').getByRole('link', { name: 'API keys' }).click()
    await page.getByRole('heading', { name: 'API keys' }).waitFor()
    await page.getByText('No keys yet').waitFor()
    expect(await page.getByRole('dialog', { name: 'Session ended' }).count()).toBe(0)
    await page.close()
  })
})
