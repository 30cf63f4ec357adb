import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { plainConfiguration } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { askMcp } from '../fixtures/mcp.ts'

interface RequestMessage {
  readonly id: number
  readonly method: string
  readonly params?: { readonly arguments?: { readonly tell?: string } }
}

const forms: string[] = []
const authorizations: (string | undefined)[] = []
/** The token that the server accepts. */
let valid = 'access-token-1'
/** Whether the endpoint of brief tokens no longer answers. */
let isSilent = false
let fixture: Fixture
let server: Server
beforeAll(async () => {
  server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      const answer = (status: number, fields: object): void => {
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(fields))
      }
      if (request.url === '/token') {
        forms.push(body)
        return answer(200, { access_token: `access-token-${forms.length}`, expires_in: 3600 })
      }
      if (request.url === '/brief') {
        // Such a token counts as expired at once.
        if (!isSilent) answer(200, { access_token: valid, expires_in: 1 })
        return
      }
      if (request.url === '/refusing') return answer(400, { error: 'invalid_client' })
      authorizations.push(request.headers.authorization)
      if (request.headers.authorization !== `Bearer ${valid}`) return answer(401, { error: 'secret words' })
      const { id, method, params } = JSON.parse(body) as RequestMessage
      const { tell } = params?.arguments ?? {}
      if (tell !== undefined) {
        const data = { [`${valid} is`]: ['sluice and hushhush', tell] }
        return answer(200, { jsonrpc: '2.0', id, error: { code: -32_001, message: `no ${valid}`, data } })
      }
      const results: Record<string, object> = {
        'server/discover': { supportedVersions: ['2026-07-28'], capabilities: { tools: {} } },
        'tools/list': {
          tools: [{ name: 'go', inputSchema: { type: 'object' } }],
          ttlMs: 60_000,
          cacheScope: 'public',
        },
        'tools/call': { content: [{ type: 'text', text: 'went' }] },
      }
      answer(200, { jsonrpc: '2.0', id, result: { resultType: 'complete', ...results[method] } })
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const oauth = { url: `${url}/mcp`, auth: 'oauth_client', client_id: 'sluice', client_secret: 'hushhush' }
  fixture = await startFixture((upstream) => ({
    ...plainConfiguration(upstream.baseUrl('m')),
    mcp: {
      servers: [
        { ...oauth, name: 'good', token_url: `${url}/token`, scope: 'tools' },
        { ...oauth, name: 'bad', token_url: `${url}/refusing` },
        { ...oauth, name: 'brief', token_url: `${url}/brief`, timeout: '1s' },
      ],
    },
  }))
})
afterAll(async () => {
  await fixture?.close()
  server.closeAllConnections()
  server.close()
})

const go = (name: string) =>
  askMcp(fixture.gateway.url, 'ann', 'tools/call', { name: `${name}_go`, arguments: {} })

test('a token is obtained with client credentials, kept, and renewed if the server refuses it', async () => {
  expect((await go('good')).message.result).toMatchObject({ content: [{ text: 'went' }] })
  expect((await go('good')).message.result).toMatchObject({ content: [{ text: 'went' }] })
  expect(forms).toHaveLength(1)
  expect(Object.fromEntries(new URLSearchParams(forms[0]))).toMatchObject({
    grant_type: 'client_credentials',
    client_id: 'sluice',
    client_secret: 'hushhush',
    scope: 'tools',
  })
  valid = 'access-token-2'
  expect((await go('good')).message.result).toMatchObject({ content: [{ text: 'went' }] })
  expect(forms).toHaveLength(2)
  expect(new Set(authorizations)).toEqual(new Set(['Bearer access-token-1', 'Bearer access-token-2']))
})

test('credentials are cut out of the errors of a server', async () => {
  const errorOf = async (tell: string) => {
    const params = { name: 'good_go', arguments: { tell } }
    return (await askMcp(fixture.gateway.url, 'ann', 'tools/call', params)).message.error
  }
  const error = { code: -32_001, message: 'no [redacted]' }
  const data = { '[redacted] is': ['sluice and [redacted]', 'words'] }
  expect(await errorOf('words')).toEqual({ ...error, data })
  expect(await errorOf('x'.repeat(16_384))).toEqual(error)
})

test('a server without a token fails its calls, and the client learns nothing of the credentials', async () => {
  const { text, message } = await go('bad')
  expect(message.result).toMatchObject({ isError: true, _meta: { 'sluice/code': 'server_auth' } })
  expect(text).not.toContain('hushhush')
  expect(text).not.toContain('invalid_client')
  const list = await askMcp(fixture.gateway.url, 'ann', 'tools/list')
  expect(list.headers['x-gateway-mcp-unavailable']).toBe('bad')
  expect(list.message.result).toMatchObject({ ttlMs: 0, tools: [{ name: 'brief_go' }, { name: 'good_go' }] })
})

test('the timeout of a call includes the wait for a token', async () => {
  await expect.poll(async () => (await go('brief')).message.result?.['isError']).toBeUndefined()
  isSilent = true
  const { message } = await go('brief')
  expect(message.result).toMatchObject({ isError: true, _meta: { 'sluice/code': 'server_timeout' } })
})
