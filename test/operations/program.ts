import { type ChildProcess, spawn } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { stringify } from 'yaml'
import { type Configuration, withoutModelLists } from '../fixtures/configuration.ts'
import { NODE_FLAGS } from '../fixtures/gateway-process.ts'
import { freePort, statusOn } from '../fixtures/port.ts'
import { BASE_ENVIRONMENT, GATEWAY_SECRET, programFolder, TEST_DATABASE_FILE } from '../fixtures/program.ts'
import { pauseBeforeProbe } from '../fixtures/readiness.ts'

/** Options for running the program. */
export interface ProgramOptions {
  /**
   * The fields of gateway.yaml, or its text. Without either, the file of an earlier run in the same folder is
   * used.
   */
  readonly config?: Configuration | string
  readonly env?: Readonly<Record<string, string>>
  /** The folder with data and configuration; a new one by default. */
  readonly folder?: Folder
  readonly port?: number
  /**
   * A command that replaces `node bin/sluice.mjs start`. It is run in the repository, and gets the
   * configuration's path from the environment.
   */
  readonly command?: readonly string[]
  /** The folder in which the command is run, instead of the repository. */
  readonly cwd?: string
  /** Whether to create a process group, which then gets signals as a whole, as from a terminal. */
  readonly group?: boolean
}

/** How a process ended. */
export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** `performance.now()`. */
  readonly at: number
}

/** The real program, with standard output and standard error separately. */
export interface Program {
  readonly url: string
  readonly port: number
  readonly pid: number
  readonly folder: Folder
  /** Standard output so far. */
  out(): string
  /** Standard error so far. */
  err(): string
  /** The lines of the log so far, parsed. */
  log(): Record<string, unknown>[]
  kill(signal: NodeJS.Signals): void
  readonly exit: Promise<Exit>
  /** Settles once `/readyz` is 200; fails with the output if the program ends before. */
  ready(): Promise<void>
}

/** A data folder with the configuration file beside the data. */
export interface Folder {
  readonly path: string
  readonly configFile: string
  discard(): void
}

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url))
const PATIENCE_MS = 240_000

/** A new data folder. */
export function newFolder(): Folder {
  const path = mkdtempSync(join(tmpdir(), 'sluice-test-'))
  return {
    path,
    configFile: join(path, 'gateway.yaml'),
    discard: () => rmSync(path, { recursive: true, force: true }),
  }
}

/** Runs the program, which may refuse to start. */
export async function runProgram(options: ProgramOptions): Promise<Program> {
  const folder = options.folder ?? newFolder()
  if (options.config !== undefined) {
    const { config } = options
    writeFileSync(
      folder.configFile,
      typeof config === 'string' ? config : stringify(withoutModelLists(config)),
    )
  }
  const program = await programFolder()
  const database = databaseToBegin(options)
  if (database !== undefined) copyFileSync(database, join(folder.path, 'sluice.db'))
  const port = options.port ?? (await freePort())
  const [file = '', ...args] = options.command ?? [
    process.execPath,
    // Without them the program starts twice: the second time with its flags.
    ...NODE_FLAGS,
    'bin/sluice.mjs',
    'start',
    '--config',
    folder.configFile,
  ]
  const child = spawn(file, args, {
    cwd: options.cwd ?? (options.command ? REPOSITORY : program),
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: options.group === true,
    env: {
      ...BASE_ENVIRONMENT,
      PORT: String(port),
      DATA_DIR: folder.path,
      GATEWAY_CONFIG: folder.configFile,
      GATEWAY_SECRET,
      ...options.env,
    },
  })
  let [out, err] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => {
    out += chunk.toString()
  })
  child.stderr.on('data', (chunk: Buffer) => {
    err += chunk.toString()
  })
  const exit = new Promise<Exit>((resolve) => {
    child.on('close', (code, signal) => resolve({ code, signal, at: performance.now() }))
  })
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    pid: child.pid ?? 0,
    folder,
    out: () => out,
    err: () => err,
    log: () =>
      out
        .split('\n')
        .filter((line) => line.startsWith('{') && line.endsWith('}'))
        .map((line) => JSON.parse(line) as Record<string, unknown>),
    kill(signal) {
      if (options.group === true && !hasEnded(child)) process.kill(-(child.pid ?? 0), signal)
      else child.kill(signal)
    },
    exit,
    async ready() {
      const deadline = performance.now() + PATIENCE_MS
      for (;;) {
        await pauseBeforeProbe(child, () => out)
        if ((await statusOn(port, '/readyz')) === 200) return
        if (hasEnded(child) || performance.now() > deadline) {
          child.kill('SIGKILL')
          throw new Error(`the program is not ready:\n${out.slice(-3000)}\n${err.slice(-3000)}`)
        }
      }
    },
  }
}

/**
 * A prepared database that makes migrations at the start unnecessary, where the configuration has the users: otherwise the
 * first start makes one.
 */
function databaseToBegin({ config, folder, env, command, cwd }: ProgramOptions): string | undefined {
  const hasUsers = typeof config === 'object' && config.users !== undefined
  const chosen = [folder, command, cwd, env?.['DATABASE_URL'], env?.['DATA_DIR'], env?.['GATEWAY_SECRET']]
  return hasUsers && chosen.every((one) => one === undefined) ? TEST_DATABASE_FILE : undefined
}

/** Runs the program until it is ready; it is discarded after the test. */
export async function readyProgram(options: ProgramOptions): Promise<Program> {
  const program = await runProgram(options)
  onTestFinished(() => discard(program))
  await program.ready()
  return program
}

/** Ends the program if it is running, and removes its folder. */
export async function discard(program: Program | undefined): Promise<void> {
  program?.kill('SIGKILL')
  await program?.exit
  program?.folder.discard()
}

/** Polls until the condition holds. */
export async function eventually(isSo: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS / 2
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`it never came to this: ${what}`)
    await sleep(20)
  }
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null
}
