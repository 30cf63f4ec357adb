import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, askStream, startFixture } from '../fixtures/fixture.ts'

const PRELOAD = `--import=${new URL('../fixtures/parser-preload.ts', import.meta.url).href}`
const ORIGIN = new URL('../../packages/http1/src/parser/vendor/llhttp/origin.json', import.meta.url)

/** Calls of the WebAssembly parser by kind of message, its hash, and the number of Node.js's own parsers. */
interface ParserReport {
  readonly sha256: string
  readonly requests: number
  readonly responses: number
  readonly nodeParsers: number
}

test('HTTP requests and responses are parsed by the vendored WebAssembly module, and none by node:http', async () => {
  const fixture = await startFixture(
    (upstream) => ({
      models: priced(['m']),
      channels: [channel('m', upstream.baseUrl('m'))],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    }),
    { env: { NODE_OPTIONS: PRELOAD } },
  )
  onTestFinished(() => fixture.close())
  fixture.upstream.script('m', { kind: 'whole' }, { kind: 'stream', events: 3 })
  expect((await fixture.chat('ann', ask('m'))).status).toBe(200)
  expect((await fixture.chat('ann', askStream('m'))).status).toBe(200)
  process.kill(fixture.gateway.pid, 'SIGUSR2')
  let report: ParserReport | undefined
  while (!(report = reportIn(fixture.gateway.logs()))) await sleep(10)
  expect(report.sha256).toBe(JSON.parse(readFileSync(ORIGIN, 'utf8')).sha256)
  expect(report.requests).toBeGreaterThanOrEqual(2)
  expect(report.responses).toBeGreaterThanOrEqual(2)
  expect(report.nodeParsers).toBe(0)
})

test('the check for the HTTP parser of node:http finds it in a program that uses node:http', () => {
  const program = `
    process.on('SIGUSR2', () => process.exit())
    const server = require('node:http').createServer((_, reply) => reply.end())
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      require('node:http').get({ port }, () => process.kill(process.pid, 'SIGUSR2'))
    })`
  const output = execFileSync(
    '/bin/sh',
    ['-c', '"$0" "$@" 2>&1', process.execPath, PRELOAD, '--eval', program],
    { timeout: 240_000 },
  )
  expect(reportIn(output.toString())).toMatchObject({ sha256: '', requests: 0, nodeParsers: 2 })
})

function reportIn(output: string): ParserReport | undefined {
  const text = /parsers: (\{.*\})/.exec(output)?.[1]
  return text === undefined ? undefined : (JSON.parse(text) as ParserReport)
}
