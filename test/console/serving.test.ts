import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { type PatchedCopy, patchedProgram } from '../fixtures/patched-copy.ts'

const ROOT = join(import.meta.dirname, '../..')
const PAGE = '<!doctype html><meta property="csp-nonce" nonce="{{nonce}}"><style nonce="{{nonce}}"></style>'
const SCRIPT = `export const text = '${'water '.repeat(2000)}'`
const ASSET = '/assets/Ab3_-x9Z/index.js'

let program: PatchedCopy
let gateway: RunningGateway

// A build made by this test, so that it does not depend on the tools that make the real one.
beforeAll(async () => {
  program = await programWith((built) => {
    mkdirSync(join(built, 'assets/Ab3_-x9Z'), { recursive: true })
    writeFileSync(join(built, 'index.html'), PAGE)
    writeFileSync(join(built, ASSET), SCRIPT)
    writeFileSync(join(built, 'assets/Ab3_-x9Z/index.css'), 'a{}')
  })
  gateway = await startGateway({ config: {}, root: program.root })
})

afterAll(async () => {
  await gateway?.discard()
  program?.discard()
})

describe('a page of the console', () => {
  test.each([
    '/',
    '/login',
    '/setup',
    '/keys',
    '/keys/12',
    '/playground',
    '/usage?period=7d',
    '/logs',
    '/logs/0191d1c0-0000-7000-8000-000000000000',
    '/sessions',
    '/sessions/0123456789abcdef',
    '/models',
    '/channels',
    '/channels/new',
    '/channels/3',
    '/guards',
    '/guards/secrets',
    '/tools',
    '/batches',
    '/batches/batch_1',
    '/invite',
    '/users',
    '/users/1',
    '/users/1/keys/2',
    '/user-keys',
    '/groups',
    '/audit',
    '/live',
    '/what-if',
    '/import',
    '/settings',
    '/account',
  ])('a path of the console is answered with index.html: %s', async (path) => {
    const { status, headers, text } = await get(path)
    expect(status).toBe(200)
    expect(headers['content-type']).toBe('text/html; charset=utf-8')
    expect(text()).toContain('csp-nonce')
  })

  test('a page of the console has a Content-Security-Policy and other security headers, and is never cached', async () => {
    const { headers, text } = await get('/')
    const nonce = /nonce="([^"]+)"/.exec(text())?.[1] ?? ''
    expect(Buffer.from(nonce, 'base64')).toHaveLength(16)
    expect(headers).toMatchObject({
      'content-security-policy': `default-src 'none'; script-src 'self'; style-src 'self' 'nonce-${nonce}'; img-src 'self' data: blob:; media-src blob:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cache-control': 'no-store',
      vary: 'accept-encoding',
    })
    expect(text()).not.toContain('{{')
  })

  test('each response with a page of the console has a new Content-Security-Policy nonce', async () => {
    const [one, other] = await Promise.all([get('/'), get('/')])
    expect(one.text()).not.toBe(other.text())
  })

  test('a page of the console can be requested by HEAD, without a body', async () => {
    const { status, headers, body } = await get('/login', { method: 'HEAD' })
    expect([status, headers['content-type'], body.length]).toEqual([200, 'text/html; charset=utf-8', 0])
  })
})

describe('a file of the console', () => {
  test.each([
    ['br', 'gzip, deflate, br', (body: Buffer) => brotliDecompressSync(body)],
    ['gzip', 'gzip', (body: Buffer) => gunzipSync(body)],
    [undefined, undefined, (body: Buffer) => body],
  ])('a file of the console is sent as %s', async (encoding, accepted, decode) => {
    const { status, headers, body } = await get(ASSET, {
      headers: accepted === undefined ? {} : { 'accept-encoding': accepted },
    })
    expect(status).toBe(200)
    expect(headers['content-encoding']).toBe(encoding)
    expect(headers['content-length']).toBe(String(body.length))
    expect(decode(body).toString()).toBe(SCRIPT)
  })

  test('a file of the console may be cached forever, each encoding separately', async () => {
    const { headers } = await get(ASSET)
    expect(headers).toMatchObject({
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
      vary: 'accept-encoding',
      'x-content-type-options': 'nosniff',
    })
  })
})

describe('all other paths', () => {
  test.each([
    '/nope',
    '/api/nope',
    '/v1/nope',
    '/login/',
    '/keys/1/2',
    '/index.html',
    '/assets/',
    '/assets/00000000/index.js',
    '/assets/../index.html',
    '/assets/Ab3_-x9Z/../../index.html',
    '/assets/Ab3_-x9Z/%2e%2e/index.js',
  ])('the path %s is a 404 in JSON', async (path) => {
    const { status, headers } = await get(path)
    expect([status, headers['content-type'], headers['cache-control']]).toEqual([
      404,
      'application/json',
      'no-store',
    ])
  })

  test('a request for the console with another method than GET and HEAD is a 404 in JSON', async () => {
    for (const method of ['POST', 'PUT', 'DELETE']) {
      expect((await get('/login', { method })).status).toBe(404)
      expect((await get(ASSET, { method })).status).toBe(404)
    }
  })
})

test('options.console: false removes the console, and true restores it, while the gateway runs', async () => {
  await gateway.apply({ options: { console: false } })
  expect((await get('/')).status).toBe(404)
  expect((await get(ASSET)).status).toBe(404)
  await gateway.apply({ options: { console: true } })
  expect((await get('/')).status).toBe(200)
})

test('if the console is not built, / says how to build it, and the API works; a later build is served without a restart', async () => {
  const bare = await programWith(() => {})
  const other = await startGateway({ config: {}, root: bare.root })
  try {
    const { status, headers, text } = await get('/', {}, other)
    expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
    expect(text()).toContain('npm ci')
    expect(headers['content-security-policy']).toContain("default-src 'none'")
    expect((await get('/api/status', {}, other)).status).toBe(200)
    expect((await get(ASSET, {}, other)).status).toBe(404)
    cpSync(join(program.root, 'console/built'), join(bare.root, 'console/built'), { recursive: true })
    expect((await get('/', {}, other)).text()).toContain('csp-nonce')
  } finally {
    await other.discard()
    bare.discard()
  }
})

test("the gateway serves the console at every path that the console's router knows", () => {
  const routes = [...readFileSync(join(ROOT, 'console/app/router.tsx'), 'utf8').matchAll(/path: '([^']+)'/g)]
  // The path of a child continues that of its parent.
  const known = routes.map(([, path = '']) => path.replace(/^\$id$/, '/logs/$id').replace('$id', '1'))
  expect(known.length).toBeGreaterThan(10)
  return Promise.all(known.map(async (path) => expect((await get(path)).status, path).toBe(200)))
})

/** The program beside a build of the console. */
async function programWith(build: (built: string) => void): Promise<PatchedCopy> {
  const copy = await patchedProgram([])
  build(join(copy.root, 'console/built'))
  return copy
}

interface Asked {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Sends a path unchanged: `fetch` would resolve its dots. */
function get(path: string, { method = 'GET', headers = {} }: Asked = {}, from = gateway) {
  return new Promise<{
    status: number
    headers: Readonly<Record<string, string | string[] | undefined>>
    body: Buffer
    text: () => string
  }>((resolve, reject) => {
    request({ host: '127.0.0.1', port: from.port, path, method, headers, agent: false }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => {
        const body = Buffer.concat(chunks)
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body,
          text: () => body.toString(),
        })
      })
      response.on('error', reject)
    })
      .on('error', reject)
      .end()
  })
}
