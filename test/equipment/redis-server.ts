import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from '@redis/client'
import { freePort } from './port.ts'

/** A Redis server for one test, without persistence. */
export interface RedisServer {
  readonly url: string
  readonly port: number
  /** Sends one command as a list of words: `['FLUSHALL']`. */
  command(words: readonly string[]): Promise<unknown>
  /** Stops the process by SIGSTOP: connections are accepted but not answered, until `resume`. */
  pause(): Promise<void>
  resume(): void
  /** Sends SIGKILL. */
  kill(): Promise<void>
  /** Starts the server again, empty, on the same port. */
  restart(): Promise<void>
  /** Stops the server. */
  stop(): Promise<void>
}

const SERVER = 'redis-server'
const START_LIMIT_MS = 60_000

/** The reason why no server can run here; undefined where one can. */
export const NO_REDIS: string | undefined = spawnSync(SERVER, ['--version'], { timeout: 60_000 }).error
  ? `there is no ${SERVER} on this machine (Debian: apt-get install redis-server)`
  : undefined

/**
 * Whether to skip tests that need a Redis server of their own, which prints a line that names them. Where
 * results are counted (`CI=true`) nothing is skipped, and the tests fail.
 */
export function withoutRedis(tests: string): boolean {
  if (NO_REDIS === undefined || process.env['CI'] === 'true') return false
  console.log(`${tests}: left out, ${NO_REDIS}`)
  return true
}

/** Starts a server on 127.0.0.1. The caller stops it. */
export async function startRedisServer(): Promise<RedisServer> {
  if (NO_REDIS !== undefined) throw new Error(NO_REDIS)
  const port = await freePort()
  const url = `redis://127.0.0.1:${port}`
  const folder = mkdtempSync(join(tmpdir(), 'sluice-redis-'))
  let child: ChildProcess | undefined

  const start = async (): Promise<void> => {
    const words = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', '']
    child = spawn(SERVER, [...words, '--appendonly', 'no', '--enable-debug-command', 'yes'], {
      stdio: 'ignore',
    })
    const deadline = performance.now() + START_LIMIT_MS
    for (;;) {
      const answer = await command(['PING']).catch((error: unknown) => error)
      if (answer === 'PONG') return
      if (child.exitCode !== null || performance.now() > deadline) {
        throw new Error(`${SERVER} did not start on port ${port}: ${String(answer)}`)
      }
      await sleep(20)
    }
  }
  const command = async (words: readonly string[]): Promise<unknown> => {
    const client = createClient({ url, socket: { reconnectStrategy: false } })
    client.on('error', () => {})
    await client.connect()
    try {
      return await client.sendCommand([...words])
    } finally {
      client.destroy()
    }
  }
  const kill = async (): Promise<void> => {
    const ending = child
    if (!ending || ending.exitCode !== null || ending.signalCode !== null) return
    const gone = new Promise((resolve) => ending.once('exit', resolve))
    ending.kill('SIGKILL')
    await gone
  }

  await start()
  return {
    url,
    port,
    command,
    async pause() {
      child?.kill('SIGSTOP')
      while (!isStopped(child?.pid)) await sleep(1)
    },
    resume: () => void child?.kill('SIGCONT'),
    kill,
    async restart() {
      await kill()
      await start()
    },
    async stop() {
      await kill()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Whether the process is stopped: the state follows the name, which is in parentheses. */
function isStopped(pid: number | undefined): boolean {
  return / T /.test(readFileSync(`/proc/${pid}/stat`, 'utf8').split(')')[1] ?? '')
}
