import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isEndless, ROUTES } from '../fixtures/routes.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { rawConnection } from '../fixtures/raw-socket.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: {
      global: { requests: 0 },
      relay: { requests: 0 },
      search: { requests: 0 },
      critical: { requests: 0 },
    },
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())

/** GET requests with an effect: they change or spend something. */
const WITH_EFFECT = [
  '/api/user/token',
  '/api/user/logout',
  '/api/user/oidc/:name',
  '/api/user/oidc/:name/callback',
  '/api/channel/test/:id',
  '/v1/responses/:id',
  '/v1/responses/:id/input_items',
]
const GETS = [
  ...new Set(ROUTES.filter((route) => route.method === 'GET' && !isEndless(route)).map(({ path }) => path)),
]
/** Headers that differ between two requests. */
const OWN = new Set(['date', 'x-request-id', 'request-id'])

interface Head {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
}

/** The head of a response, and whether the bytes after it already belong to the next response. */
async function asked(method: string, route: string, shown: string): Promise<Head & { hasBody: boolean }> {
  const path = route.replaceAll(/:\w+\*?/g, '1')
  const request = `${method} ${path} HTTP/1.1\r\nhost: localhost\r\n${shown}\r\n`
  const next = 'GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n'
  const answer = await rawConnection(fixture.gateway.port, request + next).closed()
  const end = answer.indexOf('\r\n\r\n')
  const [line = '', ...headers] = answer.slice(0, end).split('\r\n')
  return {
    status: Number(line.split(' ')[1]),
    headers: new Map(
      headers.map((each) => [each.slice(0, each.indexOf(':')), each.slice(each.indexOf(':') + 2)]),
    ),
    hasBody: !answer.slice(end + 4).startsWith('HTTP/1.1 200 '),
  }
}

const ROOTS = `authorization: ${ROOT.access_token}\r\ngateway-user: 1\r\n`
const ANNS = 'authorization: Bearer sk-ann\r\n'

describe('HEAD requests', () => {
  const paths = GETS.filter((path) => !WITH_EFFECT.includes(path))
  test.each(paths)('HEAD is answered as GET is, without a body: %s', async (path) => {
    for (const shown of ['', ROOTS, ANNS]) {
      const get = await asked('GET', path, shown)
      const head = await asked('HEAD', path, shown)
      expect(head.hasBody).toBe(false)
      expect(head.status).toBe(get.status)
      // Streamed responses have no content-length, and the gateway's metrics change from one request to the
      // next.
      const same = (name: string): boolean =>
        !OWN.has(name) && name !== 'transfer-encoding' && !(path === '/metrics' && name === 'content-length')
      const told = ({ headers }: Head): object =>
        Object.fromEntries([...headers].filter(([name]) => same(name)))
      expect(told(head)).toEqual(told(get))
    }
  })

  test('HEAD of the model list states its content-length', async () => {
    const { status, headers } = await asked('HEAD', '/v1/models', ANNS)
    expect(status).toBe(200)
    expect(Number(headers.get('content-length'))).toBeGreaterThan(50)
  })
})

test.each(WITH_EFFECT)('HEAD is refused with 405 at %s, where GET has an effect', async (path) => {
  const { status, headers, hasBody } = await asked('HEAD', path, ROOTS)
  expect([status, hasBody]).toEqual([405, false])
  expect(headers.get('allow')).not.toContain('HEAD')
  expect(headers.get('allow')).toContain('GET')
})

test('HEAD is refused at paths that do not serve GET', async () => {
  const { status, headers } = await asked('HEAD', '/v1/chat/completions', ANNS)
  expect([status, headers.get('allow')]).toEqual([405, 'POST'])
})
