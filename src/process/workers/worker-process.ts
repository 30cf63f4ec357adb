import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import process from 'node:process'
import { Link } from '../../link/link.ts'
import { LINK_DESCRIPTOR } from './setup.ts'

/** How a worker's process has ended. */
export interface ProcessEnd {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** Process of a worker, as its owner has it. */
export class WorkerProcess {
  readonly index: number
  /** Name of this run: the owner of its holds, and a borrower of the bank. */
  readonly name = randomUUID()
  readonly link: Link
  /** Resolves when the process has ended, and all that it sent is read; never rejects. */
  readonly ended: Promise<ProcessEnd>
  /** Whether it takes calls. */
  isServing = false
  readonly #child: ChildProcess

  /** Starts a process with the options of this one. */
  constructor(index: number, variables: ReadonlyMap<string, string>) {
    this.index = index
    const [, program = ''] = process.argv
    const child = spawn(process.execPath, [...process.execArgv, program, 'worker'], {
      stdio: ['ignore', 'inherit', 'inherit', 'pipe'],
      // The owner tells the file, which may be gone when a worker is replaced.
      env: { ...Object.fromEntries(variables), GATEWAY_CONFIG: '' },
    })
    this.#child = child
    this.link = new Link(child.stdio[LINK_DESCRIPTOR] as Socket)
    const exited = new Promise<ProcessEnd>((resolve) => {
      child.once('exit', (code, signal) => resolve({ code, signal }))
      child.once('error', () => resolve({ code: 1, signal: null }))
    })
    this.ended = Promise.all([exited, this.link.closed]).then(([end]) => end)
    // Without its link a worker is of no use, and its holds are settled only once it has ended.
    void this.link.closed.then(() => this.kill())
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }
}
