import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Browser } from '../fixtures/browser.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { logIn } from '../fixtures/console.ts'
import { wholeChat } from '../fixtures/chat-behaviour.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { type ScriptedProvider, startScriptedProvider } from '../fixtures/scripted-oidc.ts'

let provider: ScriptedProvider
let fixture: Fixture

const client = (name: string, issuer: string) => ({
  name,
  issuer,
  client_id: 'sluice',
  client_secret: 'secret-of-the-client',
})

beforeAll(async () => {
  provider = await startScriptedProvider()
  fixture = await startFixture((upstream) => ({
    rate_limits: { global: { requests: 0 } },
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [ROOT, user(2, 'ann', [token('ann')], { access_token: 'access-token-of-ann' })],
    login: { oidc: [client('corp', provider.issuer)] },
  }))
})
afterAll(async () => {
  await fixture?.close()
  await provider?.[Symbol.asyncDispose]()
})

const start = (name = 'corp'): string => `${fixture.gateway.url}/api/user/oidc/${name}`

async function refusalOf(url: string, browser = new Browser()) {
  const { status, headers, text } = await browser.get(url)
  const { success, code, message } = JSON.parse(text)
  return { status, retry: headers['retry-after'], success, code, message }
}

const UNAVAILABLE = {
  status: 503,
  retry: '5',
  success: false,
  code: 'identity_provider_unavailable',
  message: 'the identity provider "corp" cannot be used at the moment; try again',
}

describe('an identity provider that is down', () => {
  test('while an identity provider is down, sign-ins there are a 503, and other sign-ins and calls succeed; afterwards all succeed', async () => {
    const browser = new Browser()
    const callback = provider.authorize(await browser.locationOf(start()))
    await provider.close()
    expect(await refusalOf(start())).toEqual(UNAVAILABLE)
    expect(await refusalOf(callback, browser)).toEqual(UNAVAILABLE)
    expect(browser.cookies.has('session')).toBe(false)
    expect((await logIn(fixture.gateway.url, { access_token: 'access-token-of-ann' })).status).toBe(200)
    fixture.upstream.script('m', wholeChat({ text: 'Hello.' }))
    expect((await fixture.chat('ann', ask('m'))).status).toBe(200)
    await provider.resume()
    expect((await browser.get(provider.authorize(await browser.locationOf(start())))).status).toBe(302)
  })

  test.each([
    ['answers with an error', 500, '{}'],
    ['answers with a page', 200, '<html>maintenance</html>'],
    ['answers with JSON that is not metadata', 200, '[]'],
    [
      'names another issuer',
      200,
      '{"issuer":"https://evil.example","authorization_endpoint":"https://x.example"}',
    ],
    ['redirects', 302, ''],
  ])(
    "an OIDC sign-in is a 503 that does not repeat the response if the provider's metadata endpoint %s",
    async (_, status, body) => {
      const path = '/.well-known/openid-configuration'
      provider.overrides.set(path, (response) =>
        response
          .writeHead(status, { 'content-type': 'application/json', location: 'http://127.0.0.1:9/' })
          .end(body),
      )
      expect(await refusalOf(start())).toEqual(UNAVAILABLE)
      provider.overrides.delete(path)
    },
  )

  test('an identity provider whose valid metadata exceed the maximum size makes a sign-in a 503', async () => {
    provider.metadata = { padding: 'x'.repeat(600_000) }
    expect(await refusalOf(start())).toEqual(UNAVAILABLE)
    provider.metadata = {}
  })

  test.each(['/token', '/keys'])(
    "a sign-in ends with a 503 if the identity provider's %s fails",
    async (path) => {
      const browser = new Browser()
      const callback = provider.authorize(await browser.locationOf(start()))
      provider.overrides.set(path, (response) => response.writeHead(502).end())
      expect(await refusalOf(callback, browser)).toEqual(UNAVAILABLE)
      provider.overrides.delete(path)
    },
  )

  test('a sign-in is a 503 within the timeout if the identity provider accepts connections but does not respond', async () => {
    const silent = createServer(() => {})
    await once(silent.listen(0, '127.0.0.1'), 'listening')
    const { port } = silent.address() as AddressInfo
    await fixture.gateway.apply({
      rate_limits: { global: { requests: 0 } },
      users: [ROOT],
      login: { oidc: [client('corp', `http://127.0.0.1:${port}`)] },
    })
    expect(await refusalOf(start())).toEqual(UNAVAILABLE)
    silent.close()
  })

  test('an identity provider that is down is reported to the operator with the reason', async () => {
    await expect
      .poll(() => fixture.gateway.logs())
      .toMatch(/sign-in at the identity provider corp: .*ECONNREFUSED/)
  })
})
