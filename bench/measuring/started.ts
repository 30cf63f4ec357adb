import { type ChildProcess, fork, spawn, spawnSync } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { statusOn } from '../../test/fixtures/port.ts'
import { cores } from './cores.ts'

const START_LIMIT_MS = 25_000

/** A program that runs until it is disposed of. */
export interface Started extends AsyncDisposable {
  readonly pid: number
  readonly child: ChildProcess
}

/**
 * Starts a program on the core of the measured programs, and waits until its port answers. Its output is
 * written to a file.
 */
export async function startMeasured(options: {
  readonly command: readonly [string, ...string[]]
  readonly port: number
  readonly folder: string
  readonly env?: Readonly<Record<string, string>>
  /** A path that returns 200 once the program is ready; by default any response counts. */
  readonly readyPath?: string
}): Promise<Started> {
  const log = openSync(join(options.folder, 'output.log'), 'a')
  const [file, ...args] = cores ? ['taskset', '-c', cores.measured, ...options.command] : options.command
  const child = spawn(file, args, {
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
    stdio: ['ignore', log, log],
    env: {
      PATH: `${dirname(process.execPath)}:${process.env['PATH']}`,
      HOME: process.env['HOME'],
      ...options.env,
    },
  })
  closeSync(log)
  const started = running(child)
  const deadline = performance.now() + START_LIMIT_MS
  for (;;) {
    const status = await statusOn(options.port, options.readyPath ?? '/')
    if (options.readyPath ? status === 200 : status > 0) return started
    if (child.exitCode !== null || performance.now() > deadline) {
      await started[Symbol.asyncDispose]()
      throw new Error(`${options.command.join(' ')} did not start; see ${options.folder}/output.log`)
    }
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** Starts a program of this folder's parent, by its path there; by default on the cores of the load. */
export function startHelper(name: string, on = cores?.others): Started {
  const child = fork(new URL(`../${name}`, import.meta.url), {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    execArgv: [],
  })
  if (on) spawnSync('taskset', ['-acp', on, String(child.pid)], { stdio: 'ignore' })
  return running(child)
}

/** The next message of the program; rejects if the program ends instead. */
export function nextMessage<Message>({ child }: Started): Promise<Message> {
  return new Promise((resolve, reject) => {
    const ended = (code: number | null): void =>
      reject(new Error(`a process of the measurement ended with ${code}`))
    child.once('exit', ended)
    child.once('message', (message) => {
      child.off('exit', ended)
      resolve(message as Message)
    })
  })
}

function running(child: ChildProcess): Started {
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  return {
    pid: child.pid ?? 0,
    child,
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill('SIGTERM')
      const limit = setTimeout(() => child.kill('SIGKILL'), 3000)
      await gone
      clearTimeout(limit)
    },
  }
}
