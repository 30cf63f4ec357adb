import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { streamedChat, wholeChat } from '../fixtures/chat-behaviour.ts'
import { type FullResponse, call } from '../fixtures/client.ts'
import {
  channel,
  type Configuration,
  priced,
  ROOT,
  token,
  user,
  withoutModelLists,
} from '../fixtures/configuration.ts'
import { rawConnection } from '../fixtures/raw-socket.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'

const PAGE = 'https://app.example.com'
const OTHER = 'https://evil.example'
/** Paths that a page may read. The changed file is reloaded within seconds. */
const READABLE = [
  'anthropic-ratelimit-requests-remaining',
  'anthropic-ratelimit-tokens-reset',
  'x-ratelimit-limit-tokens',
  'x-ratelimit-remaining-requests',
  'x-request-id',
  'request-id',
  'retry-after',
  'x-gateway-dropped',
  'x-gateway-model',
  'x-should-retry',
]

/** Headers that any page may read, and those of connections, caches and CORS. */
const ALWAYS_READABLE =
  /^(?:cache-control|content-.*|connection|date|keep-alive|transfer-encoding|vary|access-control-.*|www-authenticate|x-accel-buffering)$/

let fixture: Fixture
let base: Configuration
const withOrigins = (origins: readonly string[] | '*'): Configuration => ({
  ...base,
  options: { cors: { origins } },
})
beforeAll(async () => {
  fixture = await startFixture((upstream) => {
    base = {
      models: priced(['m', 'claude']),
      channels: [
        channel('m', upstream.baseUrl('m')),
        channel('claude', upstream.baseUrl('claude'), { protocol: 'messages' }),
      ],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    }
    return withOrigins(['https://first.example', PAGE])
  })
})
afterAll(() => fixture?.close())

/** Rewrites the configuration file while the gateway runs. */
function change(config: Configuration): void {
  const file = join(fixture.gateway.dataDir, 'gateway.yaml')
  writeFileSync(`${file}.new`, stringify(withoutModelLists(config)))
  renameSync(`${file}.new`, file)
}

const preflight = (
  path: string,
  origin: string,
  headers: Record<string, string> = {},
): Promise<FullResponse> =>
  call(fixture.gateway.url, undefined, {
    method: 'OPTIONS',
    path,
    headers: { origin, 'access-control-request-method': 'POST', ...headers },
  })
const corsOf = ({ headers }: FullResponse): string[] =>
  Object.keys(headers).filter((name) => name.startsWith('access-control-'))

function expectReadable(answer: FullResponse, origin = PAGE): void {
  expect(answer.headers['access-control-allow-origin']).toBe(origin)
  expect(answer.headers.vary).toBe('origin')
  const exposed = String(answer.headers['access-control-expose-headers']).split(', ')
  expect(exposed).toEqual(expect.arrayContaining(READABLE))
  // A header that is not listed here is one that pages may read: it is in `EXPOSED` of `src/api/cors.ts`.
  const own = Object.keys(answer.headers).filter((name) => !ALWAYS_READABLE.test(name))
  expect(exposed).toEqual(expect.arrayContaining(own))
}

describe('a preflight request of an allowed page', () => {
  test.each([
    '/v1/chat/completions',
    '/v1/messages',
    '/v1/models',
    '/v1/models/org/name',
    '/v1beta/models',
    '/v2/rerank',
    '/v1/not/there',
  ])('a preflight request is answered without a key at %s', async (path) => {
    const wanted = 'authorization,content-type,x-api-key,anthropic-version,x-stainless-lang'
    const answer = await preflight(path, PAGE, { 'access-control-request-headers': wanted })
    expect(answer.status).toBe(204)
    expect(answer.text).toBe('')
    expectReadable(answer)
    expect(answer.headers['access-control-allow-methods']).toBe('GET, POST, DELETE')
    expect(answer.headers['access-control-allow-headers']).toBe(wanted)
    expect(Number(answer.headers['access-control-max-age'])).toBeGreaterThan(0)
    expect(answer.headers).not.toHaveProperty('access-control-allow-credentials')
  })
  test.each(['a{b', 'a\u00e4', 'x'.repeat(5000), '"', ' '])(
    'a CORS preflight response allows no headers where the requested ones are not valid names: %j',
    async (wanted) => {
      const answer = await preflight('/v1/models', PAGE, { 'access-control-request-headers': wanted })
      expect(answer.status).toBe(204)
      expect(answer.headers).not.toHaveProperty('access-control-allow-headers')
    },
  )
  test('several CORS preflight requests on one connection are all answered', async () => {
    const one = `OPTIONS /v1/models HTTP/1.1\r\nhost: a\r\norigin: ${PAGE}\r\naccess-control-request-method: GET\r\n`
    const connection = rawConnection(fixture.gateway.port, `${one}\r\n${one}connection: close\r\n\r\n`)
    const answers = (await connection.closed()).split('HTTP/1.1 204 ')
    expect(answers).toHaveLength(3)
    expect(answers[2]).toContain('access-control-max-age')
  })
})

describe('what an allowed page can read', () => {
  test('docs/api.md lists the headers that an allowed page can read', async () => {
    const page = readFileSync(join(import.meta.dirname, '../../docs/api.md'), 'utf8')
    const [, list = ''] = /lets it read ((?:`[^`]+`(?:,\s| and )?)+)/.exec(page) ?? []
    const listed = [...list.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)
    const answer = await fixture.chat('ann', ask('none'), { headers: { origin: PAGE } })
    const exposed = String(answer.headers['access-control-expose-headers']).split(', ')
    const fits = (name: string, pattern: string): boolean =>
      pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern
    expect(exposed.filter((name) => !listed.some((pattern) => fits(name, pattern)))).toEqual([])
    expect(listed.filter((pattern) => !exposed.some((name) => fits(name, pattern)))).toEqual([])
  })
  const headers = { origin: PAGE }
  test('a web page of an allowed origin can read a response', async () => {
    fixture.upstream.script('m', wholeChat({ text: 'Hello.' }))
    const answer = await fixture.chat('ann', ask('m'), { headers })
    expect(answer.status).toBe(200)
    expectReadable(answer)
  })
  test('a web page of an allowed origin can read a stream', async () => {
    fixture.upstream.script('m', streamedChat({ text: 'Hello.' }))
    const answer = await fixture.chat('ann', askStream('m'), { headers })
    expect(answer.text).toContain('[DONE]')
    expectReadable(answer)
  })
  test.each<[number, string, string, string]>([
    [401, 'POST', '/v1/chat/completions', 'nobody'],
    [404, 'POST', '/v1/chat/completion', 'ann'],
    [405, 'PUT', '/v1/messages', 'ann'],
    [503, 'POST', '/v1/chat/completions', 'ann'],
    [200, 'GET', '/v1/models', 'ann'],
    [200, 'GET', '/v1beta/models', 'ann'],
    [405, 'OPTIONS', '/v1/messages', 'ann'],
  ])('a web page of an allowed origin can read a %i of %s %s', async (status, method, path, key) => {
    const body = method === 'POST' ? ask('unheard-of') : undefined
    const answer = await call(fixture.gateway.url, body, { method, path, key, headers })
    expect(answer.status, answer.text).toBe(status)
    expectReadable(answer)
  })
  test('a web page of an allowed origin can read the error of a request that is not valid HTTP', async () => {
    const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\norigin: ${PAGE}\r\nauthorization: Bearer sk-ann\r\n`
    const connection = rawConnection(
      fixture.gateway.port,
      `${head}content-type: application/json\r\nexpect: 100-continue\r\ntransfer-encoding: chunked\r\n\r\n`,
    )
    await connection.until('100 Continue')
    connection.socket.write('zz\r\n')
    expect(await connection.closed()).toContain(`access-control-allow-origin: ${PAGE}\r\n`)
  })
})

describe('responses without CORS headers', () => {
  test.each([
    ['of another origin', OTHER],
    ['of one that only begins alike', `${PAGE}.evil.example`],
    ['of another scheme', 'http://app.example.com'],
    ['of another port', `${PAGE}:8443`],
    ['without an origin', 'null'],
  ])('there are no CORS headers for a page %s', async (_, origin) => {
    const asked = await preflight('/v1/models', origin)
    expect(asked.status).toBe(405)
    expect(corsOf(asked)).toEqual([])
    const answer = await call(fixture.gateway.url, undefined, {
      method: 'GET',
      path: '/v1/models',
      key: 'ann',
      headers: { origin },
    })
    expect(answer.status).toBe(200)
    expect(corsOf(answer)).toEqual([])
  })
  test.each([
    '/api/user/self',
    '/api/user/login',
    '/api/usage/token/',
    '/healthz',
    '/metrics',
    '/openapi.json',
    '/',
    '/v10/x',
  ])('there are no CORS headers at %s', async (path) => {
    expect(corsOf(await preflight(path, PAGE))).toEqual([])
    const headers = { origin: PAGE }
    expect(corsOf(await call(fixture.gateway.url, undefined, { method: 'GET', path, headers }))).toEqual([])
  })
  test('there are no CORS headers for a client without an origin', async () => {
    const answer = await call(fixture.gateway.url, undefined, {
      method: 'GET',
      path: '/v1/models',
      key: 'ann',
    })
    expect(corsOf(answer)).toEqual([])
    expect(answer.headers).not.toHaveProperty('vary')
  })
})

describe('changes of the allowed origins', () => {
  test('the allowed CORS origins can change while the gateway runs: to all, to another one, to none', async () => {
    change(withOrigins('*'))
    await expect.poll(async () => (await preflight('/v1/models', OTHER)).status).toBe(204)
    expectReadable(await preflight('/v1/models', OTHER), '*')
    change(withOrigins([OTHER]))
    await expect.poll(async () => (await preflight('/v1/models', PAGE)).status).toBe(405)
    expectReadable(await preflight('/v1/models', OTHER), OTHER)
    change(base)
    await expect.poll(async () => (await preflight('/v1/models', OTHER)).status).toBe(405)
    expect(corsOf(await preflight('/v1/models', OTHER))).toEqual([])
  })
})
