import { type ChildProcess, spawn } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { stringify } from 'yaml'
import { FLAGS } from '../../bin/flags.mjs'
import type { Configuration } from './configuration.ts'
import { freePort, statusOn } from './port.ts'
import { BASE_ENVIRONMENT, GATEWAY_SECRET, programFolder, TEST_DATABASE_FILE } from './program.ts'
import { pauseBeforeProbe } from './readiness.ts'

/** Options for starting a gateway. */
export interface GatewayOptions {
  /** The fields of gateway.yaml, or its whole text. */
  readonly config: Configuration | string
  readonly env?: Readonly<Record<string, string>>
  /** The program's folder, where it differs from that of the other tests. */
  readonly root?: string
  /** An address to listen on; 127.0.0.1 by default. */
  readonly host?: string
  /** A file descriptor for standard output; `logs` then does not include it. */
  readonly stdout?: number
  /** A data folder with content, which is deleted with the gateway; by default an empty one. */
  readonly dataDir?: string
}

/** The real program in a separate process with its own data directory. */
export interface RunningGateway {
  readonly url: string
  readonly port: number
  readonly dataDir: string
  /** The process id, which changes with each restart. */
  readonly pid: number
  /** Whether the process is running. */
  readonly isRunning: boolean
  /** Standard output and standard error of all runs so far. */
  logs(): string
  /**
   * Sends SIGTERM and waits for the end; the data directory stays until `discard`. Resolves to the exit code.
   */
  stop(): Promise<number | null>
  /** Sends SIGKILL, and waits for the end. */
  kill(): Promise<void>
  /** Sends SIGSTOP, as if the machine were suspended; `resume` continues the process. */
  pause(): void
  resume(): void
  /** Kills the process and deletes the data directory; `restart` then starts with an empty one. */
  killAndDelete(): Promise<void>
  /**
   * Starts the gateway again on the same data directory and port, with another configuration if one is given.
   */
  restart(config?: Configuration | string): Promise<void>
  /** Replaces the configuration, and settles once the log reports that it was applied. */
  apply(config: Configuration | string): Promise<void>
  /** Stops the gateway and removes the data directory. */
  discard(): Promise<void>
}

/** The log line after each reading of a valid configuration. */
const APPLIED = /"msg":"configuration applied"/g
/** The program's flags without large pages, which take 50 ms of each start. */
const NODE_FLAGS = [...FLAGS, '--use-largepages=off']
/**
 * Environment variables of all gateways: `TEST_WORKERS=2 npx vitest run test/http` runs tests with two
 * workers.
 */
const EVERY_GATEWAY =
  process.env['TEST_WORKERS'] === undefined ? {} : { WORKERS: process.env['TEST_WORKERS'] }
const START_LIMIT_MS = 240_000
/**
 * On a busy machine, a database may answer too late for a gateway's start. The start is then repeated, as a
 * supervisor would.
 */
const SLOW_DATABASE = /sluice cannot start: the database (?:cannot be reached: it does not answer|gave up)/

/**
 * Starts `node bin/sluice.mjs start` and waits until it answers; fails with its output if it exits before.
 */
export async function startGateway(options: GatewayOptions): Promise<RunningGateway> {
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'sluice-test-'))
  const file = join(dataDir, 'gateway.yaml')
  const port = await freePort()
  const cwd = options.root ?? (await programFolder())
  const database = databaseToBegin(options)
  if (database !== undefined) copyFileSync(database, join(dataDir, 'sluice.db'))
  let output = ''
  let child: ChildProcess | undefined
  /** Whether the test requested the end of the process. */
  let expected = false

  const write = (config: Configuration | string): void =>
    writeFileSync(file, typeof config === 'string' ? config : stringify(config))
  const start = async (
    config: Configuration | string,
    deadline = performance.now() + START_LIMIT_MS,
  ): Promise<void> => {
    const before = output.length
    mkdirSync(dataDir, { recursive: true })
    write(config)
    const started = spawn(process.execPath, [...NODE_FLAGS, 'bin/sluice.mjs', 'start', '--config', file], {
      cwd,
      stdio: ['ignore', options.stdout ?? 'pipe', 'pipe'],
      env: {
        ...BASE_ENVIRONMENT,
        PORT: String(port),
        HOST: options.host ?? '127.0.0.1',
        DATA_DIR: dataDir,
        GATEWAY_SECRET,
        LOG_LEVEL: 'info',
        ...EVERY_GATEWAY,
        ...options.env,
      },
    })
    child = started
    expected = false
    const keep = (chunk: Buffer): void => {
      output += chunk.toString()
    }
    started.stdout?.on('data', keep)
    started.stderr?.on('data', keep)
    started.on('exit', (code, by) => {
      if (!expected) console.error(`the gateway ended by itself (${by ?? code}):\n${output.slice(-4000)}`)
    })
    for (;;) {
      await pauseBeforeProbe(started, () => output.slice(before))
      const status = await statusOn(port, '/readyz')
      if (status === 200) return
      const over = ended(started) || performance.now() > deadline
      if (over) {
        expected = true
        if (SLOW_DATABASE.test(output.slice(before)) && performance.now() < deadline)
          return start(config, deadline)
        started.kill('SIGKILL')
        throw new Error(`the gateway did not start, /readyz says ${status}:\n${output.slice(-4000)}`)
      }
    }
  }
  const signal = async (name: 'SIGTERM' | 'SIGKILL'): Promise<void> => {
    if (!child || ended(child)) return
    expected = true
    const gone = new Promise((resolve) => child?.once('exit', resolve))
    child.kill(name)
    await gone
  }

  const lose = async (): Promise<void> => {
    await signal('SIGKILL')
    rmSync(dataDir, { recursive: true, force: true })
  }

  let config = options.config
  try {
    await start(config)
  } catch (error) {
    await lose()
    throw error
  }
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    dataDir,
    get pid() {
      return child?.pid ?? 0
    },
    get isRunning() {
      return child !== undefined && !ended(child)
    },
    logs: () => output,
    async stop() {
      await signal('SIGTERM')
      return child?.exitCode ?? null
    },
    kill: () => signal('SIGKILL'),
    pause: () => void child?.kill('SIGSTOP'),
    resume: () => void child?.kill('SIGCONT'),
    killAndDelete: lose,
    async restart(next) {
      await signal('SIGTERM')
      config = next ?? config
      await start(config)
    },
    async apply(next) {
      const applied = (): number => output.match(APPLIED)?.length ?? 0
      const before = applied()
      config = next
      // Replaces the file atomically, so that a reader never sees a part of it.
      writeFileSync(`${file}.new`, typeof next === 'string' ? next : stringify(next))
      renameSync(`${file}.new`, file)
      while (applied() === before) {
        if (!child || ended(child)) throw new Error(`the gateway ended:\n${output.slice(-4000)}`)
        await sleep(10)
      }
    },
    discard: lose,
  }
}

/**
 * A prepared database that makes migrations at the start unnecessary; undefined where the caller chooses
 * program, folder or secret.
 */
function databaseToBegin({ root, dataDir, env }: GatewayOptions): string | undefined {
  const chosen = [root, dataDir, env?.['DATABASE_URL'], env?.['DATA_DIR'], env?.['GATEWAY_SECRET']]
  return chosen.every((one) => one === undefined) ? TEST_DATABASE_FILE : undefined
}

function ended(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null
}
