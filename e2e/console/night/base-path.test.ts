import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Page } from 'playwright-core'
import { channel, priced, ROOT, token, user } from '../../../test/fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../../../test/fixtures/fixture.ts'
import { type FrontProxy, startFrontProxy } from '../../../test/fixtures/front-proxy.ts'
import { sharedBrowser, withoutBrowser } from '../chromium.ts'
import { ANSWERED } from '../console-stage.ts'

const ANN = { access_token: 'access-token-of-ann-0123456789' }

describe.skipIf(withoutBrowser())('the console below a base path, behind a proxy', () => {
  let fixture: Fixture
  let proxy: FrontProxy
  let page: Page
  let url: string
  const complaints: string[] = []
  const outside: string[] = []

  beforeAll(async () => {
    fixture = await startFixture((upstream) => ({
      options: { base_path: '/team/ai' },
      models: priced(['m']),
      channels: [channel('m', upstream.baseUrl('m'))],
      users: [{ ...ROOT, tokens: [token('a')] }, user(2, 'ann', [], ANN)],
      rate_limits: { global: { requests: 0 }, console: { requests: 0 } },
    }))
    await fixture.chat('a', ask('m'), { path: '/team/ai/v1/chat/completions' })
    const started = await startFrontProxy('nginx', fixture.gateway.port, undefined, '/team/ai')
    if (!started) throw new Error('nginx is not installed')
    proxy = started
    url = `http://127.0.0.1:${proxy.port}`
    const context = await (await sharedBrowser()).newContext({ locale: 'en-US' })
    page = await context.newPage()
    page.setDefaultTimeout(60_000)
    page.on('console', (message) => {
      if (message.type() === 'error' && !ANSWERED.test(message.text())) complaints.push(message.text())
    })
    page.on('request', (request) => {
      const { pathname, protocol } = new URL(request.url())
      if (protocol === 'http:' && !pathname.startsWith('/team/ai')) outside.push(pathname)
    })
  })
  afterAll(async () => {
    await page?.close()
    proxy?.stop()
    await fixture?.close()
  })

  const heading = (name: string) => page.getByRole('heading', { level: 1, name, exact: true }).waitFor()
  const signIn = async (accessToken: string): Promise<void> => {
    await page.getByRole('button', { name: 'Use an access token' }).click()
    await page.getByRole('textbox', { name: 'Access token' }).fill(accessToken)
    await page.getByRole('button', { name: 'Sign in' }).click()
  }
  const place = (): string => new URL(page.url()).pathname

  test('a page that needs a session leads to the sign-in, and back to that page', async () => {
    await page.goto(`${url}/team/ai/models`)
    await heading('Sign in')
    expect(place()).toBe('/team/ai/login')
    await signIn(ROOT.access_token)
    await heading('Models')
    expect(place()).toBe('/team/ai/models')
  })

  test('links, loads and downloads stay below the base path', async () => {
    await page.getByRole('link', { name: 'Users', exact: true }).click()
    await heading('Users')
    expect(place()).toBe('/team/ai/users')
    await page.reload()
    await heading('Users')
    await page.getByRole('link', { name: 'Logs', exact: true }).click()
    await heading('Logs')
    await page.waitForLoadState('networkidle')
    const csv = await page.getByRole('link', { name: /CSV/ }).getAttribute('href')
    expect(csv).toMatch(/^\/team\/ai\/api\/log\/export/)
  })

  test('signing out leads to the sign-in page, and ends the session', async () => {
    await page.getByRole('button', { name: 'Account menu' }).click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
    await heading('Sign in')
    expect(place()).toBe('/team/ai/login')
    await page.goto(`${url}/team/ai/users`)
    await heading('Sign in')
  })

  test('the address for clients that the console shows includes the base path', async () => {
    await page.goto(`${url}/team/ai/login`)
    await signIn(ANN.access_token)
    await heading('Overview')
    const address = page.getByRole('textbox', { name: 'Base URL' })
    expect(await address.inputValue()).toBe(`${url}/team/ai/v1`)
  })

  test('the browser reports no error, and requests nothing outside the base path', () => {
    expect({ complaints, outside }).toEqual({ complaints: [], outside: [] })
  })
})
