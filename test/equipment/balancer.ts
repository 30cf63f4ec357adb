import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort, statusOn } from './port.ts'

const CONFIGURATION = fileURLToPath(new URL('../../deploy/haproxy.cfg', import.meta.url))
const START_LIMIT_MS = 60_000

const MISSING: string | undefined = spawnSync('haproxy', ['-v'], { timeout: 60_000 }).error
  ? 'there is no haproxy on this machine (Debian: apt-get install haproxy)'
  : undefined

/**
 * Whether to skip the tests with a balancer, which prints a line that names them. Where results are counted
 * (`CI=true`) nothing is skipped, and the tests fail.
 */
export function withoutBalancer(tests: string): boolean {
  if (MISSING === undefined || process.env['CI'] === 'true') return false
  console.log(`${tests}: left out, ${MISSING}`)
  return true
}

/** The balancer of `deploy/`, in front of three gateways on this machine. */
export interface Balancer {
  readonly url: string
  readonly port: number
  /** The balancer's log, with its errors about the configuration. */
  logs(): string
  stop(): Promise<void>
}

/**
 * Starts the balancer in front of the gateways on these ports, and waits until one of them is ready through
 * it.
 */
export async function startBalancer(gateways: readonly number[]): Promise<Balancer> {
  const port = await freePort()
  const [first, second, third] = gateways
  const child = spawn('haproxy', ['-db', '-f', CONFIGURATION], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env['PATH'],
      BALANCER_BIND: `127.0.0.1:${port}`,
      GATEWAY_1: `127.0.0.1:${first}`,
      GATEWAY_2: `127.0.0.1:${second}`,
      GATEWAY_3: `127.0.0.1:${third}`,
    },
  })
  let said = ''
  for (const output of [child.stdout, child.stderr]) {
    output.on('data', (chunk: Buffer) => {
      said += chunk.toString()
    })
  }
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill('SIGTERM')
    await gone
  }
  const deadline = performance.now() + START_LIMIT_MS
  while ((await statusOn(port, '/readyz')) !== 200) {
    if (performance.now() > deadline || child.exitCode !== null) {
      await stop()
      throw new Error(`the balancer did not start:\n${said}`)
    }
    await sleep(50)
  }
  return { url: `http://127.0.0.1:${port}`, port, logs: () => said, stop }
}
