import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { errorBody } from '../fixtures/behaviour.ts'
import { call, open } from '../fixtures/client.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { rawConnection } from '../fixtures/raw-socket.ts'
import { type ScriptedUpstream, startUpstream } from '../fixtures/scripted-upstream.ts'
import { ask, askStream } from '../fixtures/fixture.ts'
import { byTier } from '../runner/tier.ts'
import { GATEWAY_SECRET } from '../fixtures/program.ts'
import { eventually, newFolder, type Program, readyProgram } from './program.ts'

/** Secrets in places where users may put them by mistake; none may appear in any output. */
const CANARIES = [
  'canaryprompt',
  'canaryanswer',
  'canarykey',
  'canaryupstreamkey',
  'canaryquery',
  'canaryheader',
  'canaryaccess',
  'canarymetrics',
  GATEWAY_SECRET,
]

let upstream: ScriptedUpstream
beforeAll(async () => {
  upstream = await startUpstream()
})
afterAll(() => upstream?.stop())

const config = (): Configuration => ({
  options: { metrics_token: 'canarymetrics' },
  models: priced(['m']),
  channels: [channel('main', upstream.baseUrl('main'), { models: ['m'], keys: ['canaryupstreamkey'] })],
  users: [{ ...ROOT, access_token: 'canaryaccess1234' }, user(2, 'ann', [token('canarykey')])],
})

async function stopped(program: Program): Promise<void> {
  program.kill('SIGTERM')
  expect((await program.exit).code, program.err()).toBe(0)
}

describe('the log', () => {
  test('the log has one line for each request, in JSON, with its id and its result', async () => {
    const program = await readyProgram({ config: config() })
    upstream.script('main', { kind: 'stream', events: 3 })
    const key = 'canarykey'
    const streamed = await call(program.url, askStream('m'), { key })
    upstream.script('main', { kind: 'whole' })
    const whole = await call(program.url, ask('m'), { key, path: '/v1/chat/completions?x=1' })
    const refused = await call(program.url, ask('m'), { key: 'nobody' })
    const lost = await call(program.url, undefined, { method: 'GET', path: '/nothing' })
    upstream.script('main', { kind: 'stream', events: Number.POSITIVE_INFINITY, paceMs: 20 })
    const live = await open(program.url, askStream('m'), { key })
    await live.until(' word1')
    live.abort()
    await upstream.only('main').ended
    await stopped(program)

    const answers = [streamed, whole, refused, lost, live]
    const linesOf = (id: unknown): Record<string, unknown>[] =>
      program.log().filter((line) => line['id'] === id)
    const [stream, once, denied, nowhere, left] = answers.map(({ headers }) => {
      const own = linesOf(headers['x-request-id'])
      expect(own).toHaveLength(1)
      return own[0]
    })
    const path = '/v1/chat/completions'
    const charge = { userId: 2, model: 'm', channel: 'main', attempts: 1 }
    expect(stream).toMatchObject({
      method: 'POST',
      path,
      status: 200,
      stream: true,
      quota: 22,
      reason: 'complete',
      ...charge,
    })
    expect(once).toMatchObject({
      path,
      status: 200,
      stream: false,
      inputTokens: 10,
      outputTokens: 5,
      quota: 30,
      ...charge,
    })
    expect(denied).toMatchObject({ path, status: 401, failure: 'invalid_api_key' })
    expect(nowhere).toMatchObject({ method: 'GET', path: '/nothing', status: 404 })
    expect(left).toMatchObject({ status: 499, reason: 'client_gone', ...charge })
    for (const line of [stream, once, denied, nowhere, left]) {
      expect(line?.['level']).toBe(30)
      expect(Number(line?.['ms'])).toBeGreaterThanOrEqual(0)
      expect(Number(line?.['time'])).toBeGreaterThan(1.7e12)
    }
    // Output outside the log is limited to a few sentences for the operator.
    const others = program
      .out()
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('{'))
    expect(others).toEqual([
      expect.stringMatching(/^Sluice listens on /),
      expect.stringMatching(/^warning: .*fewer than 16 characters can be guessed$/),
      expect.stringMatching(/^SIGTERM: /),
    ])
  })

  test('the log never contains a key in a path, in any spelling, with any result', async () => {
    const program = await readyProgram({ config: config(), env: { LOG_LEVEL: 'trace' } })
    const spellings = ['sk-', 'SK-', 'Sk%2d', '%73k-', '%53%4b%2D', '%2573k-', 's%6B%252d'].map(
      (prefix) => `${prefix}canarykey`,
    )
    const paths = spellings.flatMap((key) => [
      `/${key}/v1/messages`,
      `/v1/models/${key}`,
      `/v1/${key}%2Fmore`,
      `http://localhost/v1/${key}`,
      `http://${key}@localhost/v1/models`,
      `http://${key}/v1/models`,
      `${key}/v1/models`,
    ])
    const answers: string[] = []
    for (const path of paths)
      for (const [method, ...lines] of [
        ['GET', 'host: x'],
        ['HEAD', 'host: x'],
        ['PUT', 'host: x'],
        ['CONNECT', 'host: x'],
        // Refused before a route is found.
        ['GET'],
        ['GET', 'host: x@y'],
        ['GET', 'host: x', 'transfer-encoding: gzip'],
        ['POST', 'host: x', 'content-length: x'],
        ['POST', 'host: x', 'expect: x'],
      ]) {
        const head = [`${method} ${path} HTTP/1.1`, ...lines, 'connection: close'].join('\r\n')
        answers.push(await rawConnection(program.port, `${head}\r\n\r\n`).closed())
      }
    await stopped(program)
    expect(answers.join('')).not.toContain('canarykey')
    expect(program.log().length).toBeGreaterThan(spellings.length * 6)
    expect(program.out() + program.err()).not.toContain('canarykey')
  })

  test("the log never contains prompts, responses, keys, queries or an upstream's echo of them, at any level", async () => {
    const program = await readyProgram({ config: config(), env: { LOG_LEVEL: 'trace' } })
    const key = 'canarykey'
    const path = '/v1/chat/completions?key=canaryquery'
    const headers = { 'x-custom': 'canaryheader', cookie: 'canaryheader', 'user-agent': 'canaryheader' }
    const body = (more: object = {}): object => ({
      model: 'm',
      messages: [{ role: 'user', content: 'canaryprompt' }],
      user: 'canaryprompt',
      ...more,
    })
    const chat = (more?: object): Promise<unknown> => call(program.url, body(more), { key, path, headers })
    const echo = errorBody('canaryerror: you sent canaryprompt with canaryupstreamkey')
    upstream.script('main', { kind: 'whole', content: 'canaryanswer' })
    await chat()
    upstream.script('main', { kind: 'stream', word: 'canaryanswer' })
    await chat({ stream: true })
    for (const status of [400, 401, 429, 500, 599]) {
      upstream.script('main', { kind: 'status', status, body: echo })
      await chat()
    }
    upstream.script('main', { kind: 'whole', body: '{"canaryanswer": ' })
    await chat()
    upstream.script('main', { kind: 'stream', word: 'canaryanswer', ending: 'error' })
    await chat({ stream: true })
    upstream.script('main', { kind: 'raw', bytes: 'HTTP/9 canaryanswer\r\n\r\n', ending: 'close' })
    await chat()
    await chat({ max_tokens: 'canaryprompt' })
    await chat({ model: 'm', messages: 'canaryprompt' })
    await call(program.url, '{"model": canaryprompt', { key, path, headers })
    await call(program.url, body(), { key: 'canarykeyx', path, headers })
    await call(program.url, undefined, { method: 'GET', path: '/nowhere?canaryquery', headers })
    await call(program.url, undefined, {
      method: 'GET',
      path: '/metrics',
      headers: { authorization: 'Bearer canarymetricsx' },
    })
    await call(program.url, undefined, {
      method: 'GET',
      path: '/metrics',
      headers: { authorization: 'Bearer canarymetrics' },
    })
    program.kill('SIGHUP')
    await eventually(() => program.out().includes('configuration applied'), 'a reading')
    await stopped(program)
    expect(program.log().filter(({ msg }) => msg === 'request').length).toBeGreaterThanOrEqual(17)
    for (const canary of CANARIES) {
      expect(program.out()).not.toContain(canary)
      expect(program.err()).not.toContain(canary)
    }
  })

  test('the log has requests for /healthz, /readyz and /metrics only at the level debug', async () => {
    const program = await readyProgram({ config: config(), env: { LOG_LEVEL: 'debug' } })
    const headers = { authorization: 'Bearer canarymetrics' }
    for (const path of ['/healthz', '/readyz', '/metrics'])
      expect((await call(program.url, undefined, { method: 'GET', path, headers })).status).toBe(200)
    await call(program.url, undefined, { method: 'GET', path: '/v1/models', key: 'canarykey' })
    await stopped(program)
    const levels = (path: string): unknown[] => [
      ...new Set(program.log().flatMap((line) => (line['path'] === path ? [line['level']] : []))),
    ]
    for (const path of ['/healthz', '/readyz', '/metrics']) expect(levels(path)).toEqual([20])
    expect(levels('/v1/models')).toEqual([30])
  })

  test('the log is empty at the level silent', async () => {
    const program = await readyProgram({ config: config(), env: { LOG_LEVEL: 'silent' } })
    upstream.script('main', { kind: 'whole' })
    await call(program.url, ask('m'), { key: 'canarykey' })
    await call(program.url, ask('m'), { key: 'nobody' })
    await stopped(program)
    expect(program.log()).toEqual([])
    expect(program.err()).toBe('')
    expect(program.out()).toContain('Sluice listens on')
  })

  test.each(byTier(['warn'], ['warn', 'error', 'fatal']))(
    'the log at the level %s has no line for a successful request',
    async (level) => {
      const program = await readyProgram({ config: config(), env: { LOG_LEVEL: level } })
      upstream.script('main', { kind: 'whole' })
      await call(program.url, ask('m'), { key: 'canarykey' })
      await stopped(program)
      expect(program.log()).toEqual([])
    },
  )
})

test('the first credentials are printed only once, at the first start, and never logged', async () => {
  const folder = newFolder()
  const env = { LOG_LEVEL: 'trace' }
  const first = await readyProgram({ folder, config: { models: priced(['m']) }, env })
  // The gateway prints them after it has begun to take calls.
  await expect.poll(() => first.out()).toMatch(/API key +\S+\n/)
  const [, access = ''] = /access token\s+(\S+)/.exec(first.out()) ?? []
  const [, key = ''] = /API key\s+(sk-\S+)/.exec(first.out()) ?? []
  expect(access.length).toBeGreaterThan(20)
  expect(key.length).toBeGreaterThan(20)
  await call(first.url, ask('m'), { key: key.slice('sk-'.length) })
  await stopped(first)
  const logged = JSON.stringify(first.log())
  expect(logged).not.toContain(access)
  expect(logged).not.toContain(key.slice('sk-'.length))
  expect(first.out().split(access)).toHaveLength(2)

  const second = await readyProgram({ folder, env })
  expect((await call(second.url, ask('m'), { key: key.slice('sk-'.length) })).status).not.toBe(401)
  await stopped(second)
  for (const secret of [access, key.slice('sk-'.length), 'access token'])
    expect(second.out()).not.toContain(secret)
})
