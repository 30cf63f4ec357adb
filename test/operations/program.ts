import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { stringify } from 'yaml'
import { type Configuration, withoutModelLists } from '../fixtures/configuration.ts'
import { SLOW_DATABASE } from '../fixtures/gateway.ts'
import { discardRun, startRun } from '../fixtures/gateway-process.ts'
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
  /**
   * Whether the program has a process that ends with it: for what is said of the process, and for starts that fail, which end a
   * process that others could use.
   */
  readonly ownProcess?: boolean
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
  /** Ends the program if it is running, and removes its folder. */
  discard(): Promise<void>
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

/** Runs the program, which may refuse to start; in `npm test` in a process in which others ran, unless the options need another. */
export async function runProgram(options: ProgramOptions): Promise<Program> {
  const folder = options.folder ?? newFolder()
  if (options.config !== undefined) {
    const { config } = options
    writeFileSync(
      folder.configFile,
      typeof config === 'string' ? config : stringify(withoutModelLists(config)),
    )
  }
  const prepared = await programFolder()
  const database = databaseToBegin(options)
  if (database !== undefined) copyFileSync(database, join(folder.path, 'sluice.db'))
  const port = options.port ?? (await freePort())
  let [out, err] = ['', '']
  const run = startRun({
    cwd: options.cwd ?? (options.command ? REPOSITORY : prepared),
    isHostable: [options.command, options.group, options.ownProcess].every((one) => !one),
    config: folder.configFile,
    command: options.command,
    group: options.group,
    env: {
      ...BASE_ENVIRONMENT,
      PORT: String(port),
      DATA_DIR: folder.path,
      GATEWAY_CONFIG: folder.configFile,
      GATEWAY_SECRET,
      ...options.env,
    },
    onOutput(text, from) {
      if (from === 'out') out += text
      else err += text
    },
  })
  const child = run.process
  const exit = run.over.then((by): Exit => {
    const at = performance.now()
    return typeof by === 'number' ? { code: by, signal: null, at } : { code: null, signal: by, at }
  })
  const program: Program = {
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
      if (run.isOver) return
      if (options.group === true) process.kill(-(child.pid ?? 0), signal)
      else child.kill(signal)
    },
    exit,
    async discard() {
      if (options.group === true) program.kill('SIGKILL')
      await discardRun(run)
      await exit
      folder.discard()
    },
    async ready() {
      const deadline = performance.now() + PATIENCE_MS
      for (;;) {
        const mayListen = await pauseBeforeProbe(child, () => out)
        if (mayListen && (await statusOn(port, '/readyz')) === 200) return
        if (run.isOver || performance.now() > deadline) {
          child.kill('SIGKILL')
          throw new Error(`the program is not ready:\n${out.slice(-3000)}\n${err.slice(-3000)}`)
        }
      }
    },
  }
  return program
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

/**
 * Runs the program until it is ready; it is discarded after the test. A start for which the database was too slow is
 * repeated.
 */
export async function readyProgram(options: ProgramOptions): Promise<Program> {
  const deadline = performance.now() + PATIENCE_MS
  for (;;) {
    const program = await runProgram(options)
    onTestFinished(() => discard(program))
    try {
      await program.ready()
      return program
    } catch (error) {
      if (!SLOW_DATABASE.test(program.err()) || performance.now() > deadline) throw error
      await program.exit
    }
  }
}

/** Ends the program if it is running, and removes its folder. */
export async function discard(program: Program | undefined): Promise<void> {
  await program?.discard()
}

/** Polls until the condition holds. */
export async function eventually(isSo: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS / 2
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`it never came to this: ${what}`)
    await sleep(20)
  }
}
