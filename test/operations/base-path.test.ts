import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type AlertReceiver, startAlertReceiver } from '../fixtures/alert-receiver.ts'
import { errorBody } from '../fixtures/behaviour.ts'
import { Browser } from '../fixtures/browser.ts'
import { call, type CallOptions, events } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { logIn } from '../fixtures/console.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { FRONT_PROXIES, startFrontProxy } from '../fixtures/front-proxy.ts'
import { type ScriptedProvider, startScriptedProvider } from '../fixtures/scripted-oidc.ts'

const PUBLIC_URL = 'https://ai.example.com'

let provider: ScriptedProvider
let told: AlertReceiver
let fixture: Fixture
beforeAll(async () => {
  provider = await startScriptedProvider()
  provider.metadata = { end_session_endpoint: `${provider.issuer}/logout` }
  told = await startAlertReceiver()
  fixture = await startFixture((upstream) => ({
    options: { base_path: '/team/ai', public_url: PUBLIC_URL },
    models: priced(['m', 'n']),
    channels: [
      channel('m', upstream.baseUrl('m')),
      channel('dead', upstream.baseUrl('dead'), { models: ['n'] }),
    ],
    alerts: [told.declared('channel.no_key')],
    users: [ROOT, user(2, 'ann', [token('a')])],
    rate_limits: { global: { requests: 0 }, critical: { requests: 0 } },
    login: {
      oidc: [
        { name: 'corp', issuer: provider.issuer, client_id: 'sluice', client_secret: 'the-secret-of-it' },
      ],
    },
  }))
})
afterAll(async () => {
  await fixture?.close()
  await told?.stop()
  await provider?.[Symbol.asyncDispose]()
})

const get = (path: string, options: CallOptions = {}) =>
  call(fixture.gateway.url, undefined, { method: 'GET', path, ...options })
const AS_ROOT = { authorization: ROOT.access_token, 'gateway-user': '1' }

describe('with options.base_path', () => {
  test('calls of every protocol, model lists and the management API are below the base path', async () => {
    const chat = await fixture.chat('a', ask('m'), { path: '/team/ai/v1/chat/completions' })
    expect(chat.status).toBe(200)
    const messages = await fixture.chat(
      'a',
      { model: 'm', max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] },
      { path: '/team/ai/v1/messages' },
    )
    expect(messages.status).toBe(200)
    const gemini = await fixture.chat(
      'a',
      { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
      { path: '/team/ai/v1beta/models/m:generateContent' },
    )
    expect(gemini.status).toBe(200)
    expect((await get('/team/ai/v1/models', { key: 'a' })).text).toContain('"id":"m"')
    expect((await get('/team/ai/api/user/self', { headers: AS_ROOT })).status).toBe(200)
  })

  test.each(['/healthz', '/readyz', '/metrics'])('%s is in both places', async (path) => {
    for (const place of [path, `/team/ai${path}`]) expect((await get(place)).status).toBe(200)
  })

  test.each(['/v1/models', '/team/v1/models', '/team/aiv1/models', '/api/status', '/openapi.json'])(
    '%s is not below the base path, and a 404 that names the path below it',
    async (path) => {
      const { status, text } = await get(path, { key: 'a' })
      expect(status).toBe(404)
      expect(text).toContain(`there is nothing at ${path}; did you mean /team/ai${path}?`)
    },
  )

  test.each(['/', '/login', '/keys', '/assets/x/y.js'])(
    'the console is not outside the base path: %s',
    async (path) => expect((await get(path)).status).toBe(404),
  )

  test('a mistyped path is answered with a suggestion that includes the base path', async () => {
    const { status, text } = await get('/team/ai/v1/v1/models', { key: 'a' })
    expect(status).toBe(404)
    expect(text).toContain('did you mean /team/ai/v1/models?')
  })

  test('a path that takes another method is named with the base path', async () => {
    const refused = await call(fixture.gateway.url, undefined, {
      method: 'DELETE',
      path: '/team/ai/api/status',
    })
    expect(refused.status).toBe(405)
    expect(refused.text).toContain('/team/ai/api/status takes GET, HEAD, not DELETE')
  })

  test('an unreadable request gets the error format of its path below the base path', async () => {
    const { text } = await call(fixture.gateway.url, 'x', {
      path: '/team/ai/v1/messages',
      headers: { expect: 'something' },
    })
    expect(JSON.parse(text)).toMatchObject({ type: 'error', error: { type: expect.any(String) } })
  })

  test('the OpenAPI document names the base path as its server', async () => {
    expect(JSON.parse((await get('/team/ai/openapi.json')).text)).toMatchObject({
      servers: [{ url: '/team/ai' }],
      paths: { '/v1/chat/completions': {} },
    })
  })

  test('a redirect leads below the base path', async () => {
    const { headers } = await get('/team/ai/api/usage/token?a=1', { key: 'a' })
    expect(headers.location).toBe('/team/ai/api/usage/token/?a=1')
  })

  test('the cookie of a session is sent to the base path alone', async () => {
    const url = fixture.gateway.url
    const { status, setCookie, cookie } = await logIn(
      url,
      { access_token: ROOT.access_token },
      {},
      '/team/ai',
    )
    expect(status).toBe(200)
    expect(setCookie).toContain('; Path=/team/ai;')
    expect((await get('/team/ai/api/user/self', { headers: { cookie } })).status).toBe(200)
    const out = await call(url, {}, { path: '/team/ai/api/user/logout', headers: { cookie } })
    expect(out.headers['set-cookie']?.join()).toMatch(/^session=;.*Path=\/team\/ai;/)
  })

  test('the pages of the console refer to files and name the API below the base path', async () => {
    for (const path of ['/team/ai', '/team/ai/', '/team/ai/keys/7']) {
      const { status, text } = await get(path)
      expect(status).toBe(200)
      expect(text).toContain('<meta name="base-path" content="/team/ai" />')
      const files = [...text.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, file = '']) => file)
      expect(files.length).toBeGreaterThan(3)
      for (const file of files) {
        expect(file).toMatch(/^\/team\/ai\/assets\//)
        expect((await get(file)).status).toBe(200)
      }
    }
  })

  test('a sign-in at an identity provider leads back below the base path, to the page that was asked for', async () => {
    provider.person = { sub: 'eve-1', preferred_username: 'eve' }
    const browser = new Browser()
    const start = `${fixture.gateway.url}/team/ai/api/user/oidc/corp?next=/keys`
    const location = await browser.locationOf(start)
    expect(new URL(location).searchParams.get('redirect_uri')).toBe(
      `${PUBLIC_URL}/team/ai/api/user/oidc/corp/callback`,
    )
    const back = provider.authorize(location).replace(PUBLIC_URL, fixture.gateway.url)
    const answer = await browser.get(back)
    expect(answer.headers.location).toBe('/team/ai/keys')
    const session = answer.headers['set-cookie']?.find((set) => set.startsWith('session='))
    expect(session).toContain('; Path=/team/ai;')
    const { cookie } = browser.session
    const out = await call(fixture.gateway.url, {}, { path: '/team/ai/api/user/logout', headers: { cookie } })
    const { data } = JSON.parse(out.text) as { data: { logout_url: string } }
    expect(new URL(data.logout_url).searchParams.get('post_logout_redirect_uri')).toBe(
      `${PUBLIC_URL}/team/ai/login`,
    )
  })

  test('the cookie of a sign-in at an identity provider is sent to its callback below the base path', async () => {
    const { headers } = await get('/team/ai/api/user/oidc/corp')
    expect(headers['set-cookie']?.join()).toContain('; Path=/team/ai/api/user/oidc/;')
  })

  test('the links in alerts lead below the base path', async () => {
    fixture.upstream.script('dead', { kind: 'status', status: 401, body: errorBody('revoked') })
    await fixture.chat('a', ask('n'), { path: '/team/ai/v1/chat/completions' })
    await told.atLeast(1)
    const [alert] = told.received
    const { url } = (alert as (typeof told.received)[number]).data as { url: string }
    expect(url.replace(/\d+$/, 'ID')).toBe(`${PUBLIC_URL}/team/ai/channels/ID`)
    expect((await get(new URL(url).pathname)).status).toBe(200)
  })
})

test.each(Object.keys(FRONT_PROXIES) as (keyof typeof FRONT_PROXIES)[])(
  '%s passes on what is below the base path: calls, streams, the console and sign-in work behind it',
  async (name) => {
    const proxy = await startFrontProxy(name, fixture.gateway.port, undefined, '/team/ai')
    if (!proxy) throw new Error(`${name} is not installed`)
    try {
      const url = `http://127.0.0.1:${proxy.port}`
      const at = (path: string, options: CallOptions = {}) =>
        call(url, undefined, { method: 'GET', path, ...options })
      const path = '/team/ai/v1/chat/completions'
      expect((await call(url, ask('m'), { path, key: 'a' })).status).toBe(200)
      const stream = await call(url, askStream('m'), { path, key: 'a' })
      expect(events(stream.text).at(-1)).toContain('[DONE]')
      const { cookie } = await logIn(url, { access_token: ROOT.access_token }, {}, '/team/ai')
      expect((await at('/team/ai/api/user/self', { headers: { cookie } })).status).toBe(200)
      const page = await at('/team/ai/login')
      const [, script = ''] = /type="module"[^>]* src="([^"]*)"/.exec(page.text) ?? []
      expect((await at(script)).headers['content-type']).toContain('javascript')
      expect((await at('/v1/models', { key: 'a' })).status).not.toBe(200)
    } finally {
      proxy.stop()
    }
  },
)
