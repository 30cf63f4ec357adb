import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import process from 'node:process'
import { plainConfiguration } from '../../test/fixtures/configuration.ts'
import { startFixture } from '../../test/fixtures/fixture.ts'
import { startMcpServer } from '../../test/fixtures/mcp.ts'
import { useClients } from './clients.ts'
import { conformanceServer } from './conformance-server.ts'

const HERE = import.meta.dirname
const SUITE = join(HERE, 'node_modules/@modelcontextprotocol/conformance/dist/index.js')

/** Scenarios of 2025-11-25 about what the gateway does not serve. */
const NOT_SERVED: ReadonlySet<string> = new Set([
  'tools-call-sampling',
  'tools-call-elicitation',
  'elicitation-sep1034-defaults',
  'elicitation-sep1330-enums',
  'resources-subscribe',
  'resources-unsubscribe',
])

/** The revision of the server behind the gateway, and that whose requirements are tested. */
const RUNS = [
  ['2026-07-28', '2026-07-28'],
  ['2026-07-28', '2025-11-25'],
  ['2025-11-25', '2025-11-25'],
] as const

execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: HERE, stdio: 'inherit' })
let failures = 0
for (const [version, revision] of RUNS) failures += await runSuite(version, revision)
failures += await useClients()
process.exitCode = failures === 0 ? 0 : 1

/** Resolves to the number of scenarios that failed and should not have. */
async function runSuite(version: string, revision: string): Promise<number> {
  const server = await startMcpServer(conformanceServer([version]))
  const fixture = await startFixture((upstream) => ({
    ...plainConfiguration(upstream.baseUrl('m')),
    mcp: { servers: [{ name: 'test', url: server.url }] },
  }))
  const proxy = await proxyWithKey(fixture.gateway.url)
  const { port } = proxy.address() as AddressInfo
  const url = `http://127.0.0.1:${port}/mcp`
  const first = await runScenarios(url, '--requirements', revision)
  // Scenarios break streams off a second after they began, which a busy machine may not answer in time.
  const still: string[] = []
  for (const name of first.failed) {
    const again = await runScenarios(url, '--scenario', name, '--spec-version', revision)
    if (again.succeeded) continue
    still.push(name)
    process.stdout.write(again.output)
  }
  proxy.closeAllConnections()
  proxy.close()
  await fixture.close()
  await server.close()
  const repeated = first.failed.length === 0 ? '' : `, repeated: ${first.failed.join(', ')}`
  const words = still.length === 0 ? 'as expected' : `failed: ${still.join(', ')}`
  process.stdout.write(
    `server ${version}, requirements ${revision}: ${first.passed.length} passed${repeated}, ${words}\n`,
  )
  return still.length + (first.passed.length === 0 ? 1 : 0)
}

interface ScenarioResults {
  readonly passed: readonly string[]
  /** Those that are scored and served. */
  readonly failed: readonly string[]
  readonly succeeded: boolean
  readonly output: string
}

async function runScenarios(url: string, ...options: string[]): Promise<ScenarioResults> {
  const suite = spawn(process.execPath, [SUITE, 'server', '--url', url, ...options], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  suite.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const [code] = (await once(suite, 'close')) as [number | null]
  // What the suite does not score comes after its own headings, in parentheses.
  const unscored = new Set([...output.matchAll(/^ +✗ (\S+) \(/gm)].map(([, name]) => name))
  const passed = [...output.matchAll(/^✓ (\S+):/gm)].map(([, name = '']) => name)
  const failed = [...output.matchAll(/^✗ (\S+):/gm)].map(([, name = '']) => name)
  return {
    passed,
    failed: failed.filter((name) => !unscored.has(name) && !NOT_SERVED.has(name)),
    succeeded: code === 0,
    output,
  }
}

/** A proxy in front of the gateway that adds an API key, which the suite cannot send. */
async function proxyWithKey(gateway: string): Promise<Server> {
  const proxy = createServer((given, response) => {
    const { method = 'GET', url = '/', headers } = given
    const sent = request(
      `${gateway}${url}`,
      { method, headers: { ...headers, authorization: 'Bearer sk-ann' }, setHost: false },
      (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers)
        answer.pipe(response)
      },
    )
    sent.on('error', () => response.destroy())
    response.on('close', () => sent.destroy())
    given.pipe(sent)
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  return proxy
}
