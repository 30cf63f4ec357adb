import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { contentFrame, DONE_FRAME, finishFrame } from '../fixtures/behaviour.ts'
import { call, open } from '../fixtures/client.ts'
import { plainConfiguration } from '../fixtures/configuration.ts'
import { statusOn } from '../fixtures/port.ts'
import { rawConnection } from '../fixtures/raw-socket.ts'
import { type ScriptedUpstream, startUpstream } from '../fixtures/scripted-upstream.ts'
import { ask, askStream } from '../fixtures/fixture.ts'
import { discard, eventually, type Program, runProgram } from './program.ts'

let upstream: ScriptedUpstream
let program: Program
let watched: Program
beforeAll(async () => {
  upstream = await startUpstream()
  const config = {
    options: { trusted_proxies: ['0.0.0.0/0'] },
    ...plainConfiguration(upstream.baseUrl('m')),
  }
  ;[program, watched] = await Promise.all([
    runProgram({ config, env: { HOST: '::' } }),
    runProgram({
      config: { ...config, options: { metrics_token: 'watcher-of-figures' } },
      env: { HOST: '::' },
    }),
  ])
  await Promise.all([program.ready(), watched.ready()])
})
afterAll(async () => {
  await Promise.all([discard(program), discard(watched)])
  await upstream?.stop()
})

/** Addresses of this machine outside the loopback interface. */
const OUTSIDE = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .filter(({ internal, family }) => !internal && family === 'IPv4')
  .map(({ address }) => address)

/** Locks the database, so that no other process can write. */
function lockDatabase({ folder }: Program): () => void {
  const database = new DatabaseSync(join(folder.path, 'sluice.db'), { timeout: 5000 })
  database.exec('BEGIN EXCLUSIVE')
  return () => {
    database.exec('ROLLBACK')
    database.close()
  }
}

describe('who may read /metrics', () => {
  const seen = async (url: string, headers: Record<string, string> = {}, host?: string): Promise<number> => {
    const options = { method: 'GET', path: '/metrics', headers }
    return (await call(url, undefined, host === undefined ? options : { ...options, host })).status
  }

  test('/metrics is served to clients on the same machine', async () => {
    expect(await seen(program.url)).toBe(200)
    expect(await seen(program.url, {}, '::1')).toBe(200)
    // The gateway listens on the last of these addresses.
    for (const host of [
      'localhost',
      'LOCALHOST:80',
      '127.0.0.1',
      '127.1.2.3:9090',
      '[::1]:3000',
      '[::]:3000',
    ])
      expect(await seen(program.url, { host }), host).toBe(200)
  })

  test('/metrics is not served to a request from the same machine with the headers of a proxy', async () => {
    for (const name of [
      'forwarded',
      'via',
      'x-real-ip',
      'x-forwarded-for',
      'X-Forwarded-Host',
      'x-forwarded-proto',
      'x-forwarded-port',
      'X-FORWARDED-SERVER',
      'x-forwarded-anything',
      'cf-connecting-ip',
      'CF-Ray',
      'true-client-ip',
      'x-client-ip',
      'client-ip',
      'x-cluster-client-ip',
      'fastly-client-ip',
      'x-envoy-external-address',
      'x-original-forwarded-for',
      'x-azure-clientip',
      'fly-client-ip',
      'x-vercel-forwarded-for',
      'forwarded-for',
      'x-forwarded',
      'cdn-loop',
      'x-amzn-trace-id',
      'remote-addr',
    ])
      for (const value of ['127.0.0.1', 'for=127.0.0.1', ''])
        expect(await seen(program.url, { [name]: value }), name).toBe(403)
    const answer = await call(program.url, undefined, {
      method: 'GET',
      path: '/metrics',
      headers: { via: '1.1 proxy' },
    })
    expect(answer.json().error).toMatchObject({ code: 'not_operator' })
    expect(answer.text).not.toContain('sluice_')
  })

  test('/metrics is not served to a request from the same machine that names another host', async () => {
    for (const host of ['gateway.example', 'localhost.gateway.example', '127.0.0.1.example', '10.0.0.1:3000'])
      expect(await seen(program.url, { host }), host).toBe(403)
    const { port } = program
    for (const unnamed of ['1.0\r\n', '1.0\r\nhost:\r\n', '1.1\r\nhost:\r\nconnection: close\r\n'])
      expect(await rawConnection(port, `GET /metrics HTTP/${unnamed}\r\n`).closed()).toMatch(
        /^HTTP\/1\.1 403 /,
      )
    const absolute = `GET http://gateway.example/metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`
    expect(await rawConnection(port, absolute).closed()).toMatch(/^HTTP\/1\.1 403 /)
  })

  test('/metrics is not served to other clients, whatever headers they send', async () => {
    for (const host of OUTSIDE) {
      expect(await seen(program.url, {}, host)).toBe(403)
      for (const name of ['x-forwarded-for', 'forwarded', 'x-real-ip'])
        expect(await seen(program.url, { [name]: '127.0.0.1' }, host)).toBe(403)
      expect(await seen(program.url, { authorization: 'Bearer ' }, host)).toBe(403)
    }
  })

  test('/metrics is served from any address to clients that send options.metrics_token', async () => {
    for (const host of [...OUTSIDE, '127.0.0.1']) {
      expect(await seen(watched.url, { authorization: 'Bearer watcher-of-figures' }, host)).toBe(200)
      expect(await seen(watched.url, { authorization: 'Bearer watcher-of-figure' }, host)).toBe(403)
      const behindProxy = { 'x-forwarded-for': '9.9.9.9', host: 'gateway.example' }
      expect(
        await seen(watched.url, { ...behindProxy, authorization: 'Bearer watcher-of-figures' }, host),
      ).toBe(200)
      expect(await seen(watched.url, behindProxy, host)).toBe(403)
      // Behind a proxy on this machine, every client appears as a peer on this machine.
      expect(await seen(watched.url, {}, host)).toBe(403)
    }
  })
})

describe('/healthz and /readyz', () => {
  test('/healthz and /readyz are 200 while the gateway runs, for everybody, and forbid caching', async () => {
    for (const path of ['/healthz', '/readyz']) {
      const answer = await call(program.url, undefined, { method: 'GET', path })
      expect(answer.status).toBe(200)
      expect(answer.headers['cache-control']).toBe('no-store')
      for (const host of OUTSIDE) {
        expect((await call(program.url, undefined, { method: 'GET', path, host })).status).toBe(200)
      }
    }
  })

  test('while the database is not writable, /readyz is 503 even without calls, and /healthz stays 200', async () => {
    const unlock = lockDatabase(program)
    try {
      await eventually(async () => (await statusOn(program.port, '/readyz')) === 503, 'not ready')
      const { status, headers } = await call(program.url, undefined, { method: 'GET', path: '/readyz' })
      expect(status).toBe(503)
      expect(Number(headers['retry-after'])).toBeGreaterThan(0)
      expect(await statusOn(program.port, '/healthz')).toBe(200)
    } finally {
      unlock()
    }
    await eventually(async () => (await statusOn(program.port, '/readyz')) === 200, 'ready again')
  })

  test('while the database is not writable, calls are refused with a time to retry; afterwards they are answered', async () => {
    const unlock = lockDatabase(program)
    try {
      const refused = await call(program.url, ask('m'), { key: 'ann' })
      expect(refused.status).toBe(503)
      expect(refused.json().error).toMatchObject({ code: 'overloaded' })
      expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
    } finally {
      unlock()
    }
    expect((await call(program.url, ask('m'), { key: 'ann' })).status).toBe(200)
  })

  test('while the gateway drains, /readyz is 503 at once on open connections, and /healthz stays 200', async () => {
    const { promise: after, resolve: finish } = Promise.withResolvers<void>()
    const frames = [contentFrame(' word0')]
    upstream.script('m', { kind: 'stream', frames, rest: { after, frames: [finishFrame(), DONE_FRAME] } })
    const live = await open(watched.url, askStream('m'), { key: 'ann' })
    await live.until(' word0')
    // Opened before the signal with an answered request, so that the connections are in use.
    const [ready, healthy] = ['/readyz', '/healthz'].map((path) =>
      rawConnection(
        watched.port,
        `GET /healthz HTTP/1.1\r\nhost: x\r\n\r\nGET ${path} HTTP/1.1\r\nhost: x\r\n`,
      ),
    )
    await Promise.all([ready?.until('ok\n'), healthy?.until('ok\n')])
    watched.kill('SIGTERM')
    await eventually(() => watched.out().includes('SIGTERM: no new calls'), 'the signal was heard')
    ready?.socket.write('\r\n')
    healthy?.socket.write('\r\n')
    expect(await ready?.until('retry-after: ')).toMatch(/ok\nHTTP\/1\.1 503 [^]*retry-after: /i)
    expect(await healthy?.until('ok\nHTTP/1.1 200 ')).toContain('ok\nHTTP/1.1 200 ')
    finish()
    expect((await live.end()).text).toContain('data: [DONE]')
    expect((await watched.exit).code).toBe(0)
  })
})
