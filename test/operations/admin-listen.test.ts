import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { call, open } from '../fixtures/client.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { askStream } from '../fixtures/fixture.ts'
import { freePort, statusOn } from '../fixtures/port.ts'
import { rawConnection } from '../fixtures/raw-socket.ts'
import { startUpstream } from '../fixtures/scripted-upstream.ts'
import { discard, eventually, type Program, readyProgram, runProgram } from './program.ts'

const get = (port: number, path: string, headers: Record<string, string> = {}) =>
  call(`http://127.0.0.1:${port}`, undefined, { method: 'GET', path, headers })

/** A gateway with another address for its operator, and the port of that. */
async function started(config: Configuration = {}): Promise<{ program: Program; admin: number }> {
  const admin = await freePort()
  const options = { ...config.options, admin_listen: `127.0.0.1:${admin}` }
  return { program: await readyProgram({ config: { ...config, options } }), admin }
}

describe('options.admin_listen', () => {
  test('the address of admin_listen serves /healthz, /readyz and /metrics, and no other path', async () => {
    const { program, admin } = await started()
    expect((await get(admin, '/healthz')).text).toBe('ok\n')
    expect((await get(admin, '/readyz')).text).toBe('ready\n')
    expect((await get(admin, '/metrics')).text).toContain('sluice_open_calls')
    for (const path of ['/', '/v1/models', '/api/status', '/healthz/x', '/console'])
      expect((await get(admin, path)).status, path).toBe(404)
    for (const path of ['/healthz', '/readyz', '/metrics'])
      expect(await statusOn(program.port, path)).toBe(200)
  })

  test('the environment variable ADMIN_LISTEN states the address of admin_listen if gateway.yaml does not', async () => {
    const [admin, other] = [await freePort(), await freePort()]
    const env = { ADMIN_LISTEN: `127.0.0.1:${admin}` }
    await readyProgram({ config: {}, env })
    expect(await statusOn(admin, '/readyz')).toBe(200)
    const config = { options: { admin_listen: `127.0.0.1:${other}` } }
    await readyProgram({ config, env: { ADMIN_LISTEN: `127.0.0.1:${await freePort()}` } })
    expect(await statusOn(other, '/readyz')).toBe(200)
  })

  test('/metrics has the same access rules at the address of admin_listen', async () => {
    const { admin } = await started()
    expect((await get(admin, '/metrics', { 'x-forwarded-for': '9.9.9.9' })).status).toBe(403)
    expect((await get(admin, '/metrics', { host: 'gateway.example' })).status).toBe(403)
    const { admin: guarded } = await started({ options: { metrics_token: 'watcher' } })
    expect((await get(guarded, '/metrics')).status).toBe(403)
    expect((await get(guarded, '/metrics', { authorization: 'Bearer watcher' })).status).toBe(200)
  })

  test('while a gateway stops, /readyz at the address of admin_listen is 503 until the last call has ended', async () => {
    const upstream = await startUpstream()
    onTestFinished(() => upstream.stop())
    const ending = Promise.withResolvers<void>()
    upstream.script('m', { kind: 'stream', endsAfter: ending.promise })
    const { program, admin } = await started({
      models: priced(['m']),
      channels: [channel('m', upstream.baseUrl('m'))],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    })
    const live = await open(program.url, askStream('m'), { key: 'ann' })
    await live.until('word')
    program.kill('SIGTERM')
    await eventually(async () => (await statusOn(program.port, '/readyz')) === 0, 'it listens no more')
    expect((await get(admin, '/readyz')).text).toBe('not ready: stopping\n')
    expect((await get(admin, '/healthz')).status).toBe(200)
    ending.resolve()
    expect((await live.end()).text).toContain('[DONE]')
    expect((await program.exit).code).toBe(0)
    expect(await statusOn(admin, '/healthz')).toBe(0)
  })

  test('during the start the address of admin_listen says that the gateway is not ready, and a shared port takes no connection', async () => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1')
    onTestFinished(() => void silent.close())
    await once(silent, 'listening')
    const [admin, opensDatabase] = [await freePort(), once(silent, 'connection')]
    const program = await runProgram({
      ownProcess: true,
      config: { options: { admin_listen: `127.0.0.1:${admin}`, reuse_port: true } },
      env: { DATABASE_URL: `postgres://sluice@127.0.0.1:${(silent.address() as AddressInfo).port}/sluice` },
    })
    onTestFinished(() => discard(program))
    await opensDatabase
    expect((await get(admin, '/healthz')).text).toBe('ok\n')
    expect(await statusOn(admin, '/readyz')).toBe(503)
    expect(await statusOn(admin, '/metrics')).toBe(503)
    expect(await statusOn(program.port, '/healthz')).toBe(0)
  })

  test('at most 100 connections to the address of admin_listen are open: idle ones are closed for others', async () => {
    const { admin } = await started()
    const all = Array.from({ length: 200 }, () => rawConnection(admin, 'GET /healthz HTTP/1.1\r\n'))
    onTestFinished(() => all.forEach(({ socket }) => socket.destroy()))
    await Promise.all(all.map(({ socket }) => once(socket, 'connect')))
    expect(await statusOn(admin, '/healthz')).toBe(200)
    const answers = all.map((connection) => {
      connection.socket.write('host: 127.0.0.1\r\nconnection: close\r\n\r\n')
      return connection.closed()
    })
    const answered = (await Promise.all(answers)).filter((text) => text.startsWith('HTTP/1.1 200 '))
    expect(answered.length).toBeGreaterThan(0)
    expect(answered.length).toBeLessThanOrEqual(100)
  })

  test('a port of admin_listen that is taken ends the start with a sentence that names the option', async () => {
    const admin = await freePort()
    const server = createServer().listen(admin, '127.0.0.1')
    onTestFinished(() => void server.close())
    const program = await runProgram({
      config: { options: { admin_listen: `127.0.0.1:${admin}` } },
      ownProcess: true,
    })
    onTestFinished(() => discard(program))
    expect((await program.exit).code).toBe(1)
    expect(program.err()).toBe(
      `sluice cannot start: port ${admin} of 127.0.0.1 is taken: stop the program that listens there, or set options.admin_listen to another\n`,
    )
  })
})

test.each([
  ['--workers', ['--workers', '2'], {}],
  ['WORKERS', [], { WORKERS: 'auto' }],
])('a start with %s says what to do instead, and ends with code 1', async (_, flags, env) => {
  const program = await runProgram({
    config: {},
    command: [process.execPath, 'bin/sluice.mjs', 'start', ...flags],
    env,
  })
  onTestFinished(() => discard(program))
  expect((await program.exit).code).toBe(1)
  expect(program.out()).toBe('')
  expect(program.err()).toMatch(
    /^sluice cannot start: there are no workers \(--workers, WORKERS\): start several nodes on PostgreSQL, .*options\.reuse_port \(docs\/scaling\.md\)\n$/,
  )
})
