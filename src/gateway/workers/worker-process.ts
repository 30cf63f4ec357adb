import { type ChildProcess, type SendHandle, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import process from 'node:process'
import { Link } from '../../ipc/link.ts'
import type { SocketOrder } from './sockets-from-owner.ts'
import { LINK_DESCRIPTOR } from './worker-messages.ts'
import type { SharedSocket } from './shared-sockets.ts'

/** How a worker's process has ended. */
export interface ProcessEnd {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** Process of a worker, as seen by its owner. */
export class WorkerProcess {
  readonly index: number
  /** Name of this run, as the owner of its holds and as a borrower of the bank. */
  readonly name = randomUUID()
  readonly link: Link
  /** Resolves when the process has ended and everything that it sent has been read; never rejects. */
  readonly ended: Promise<ProcessEnd>
  /** Whether it takes calls. */
  isServing = false
  readonly #child: ChildProcess

  private constructor(index: number, child: ChildProcess) {
    this.index = index
    this.#child = child
    this.link = new Link(child.stdio[LINK_DESCRIPTOR] as Socket)
    // A message that cannot be sent means that the process is ending.
    child.on('error', () => {})
    const exited = new Promise<ProcessEnd>((resolve) => {
      child.once('exit', (code, signal) => resolve({ code, signal }))
    })
    this.ended = Promise.all([exited, this.link.closed]).then(([end]) => end)
    // A worker without its link is of no use, and its holds are settled only after it has ended.
    void this.link.closed.then(() => this.kill())
  }

  /** Starts a process with the options of this one; rejects if the system cannot start it. */
  static async start(index: number, variables: ReadonlyMap<string, string>): Promise<WorkerProcess> {
    const [, program = ''] = process.argv
    const child = spawn(process.execPath, [...process.execArgv, program, 'worker'], {
      stdio: ['ignore', 'inherit', 'inherit', 'pipe', 'ipc'],
      // The owner sends the text of the file, which may no longer exist when a worker is replaced.
      env: { ...Object.fromEntries(variables), GATEWAY_CONFIG: '' },
    })
    await once(child, 'spawn')
    return new WorkerProcess(index, child)
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  /** Gives it a socket to listen on, in addition to those that it has. */
  giveSocket(place: number, socket: SharedSocket): void {
    this.#order({ give: place }, socket)
  }

  /** Makes it stop listening on a socket. */
  takeSocketBack(place: number): void {
    this.#order({ takeBack: place })
  }

  #order(order: SocketOrder, socket?: SharedSocket): void {
    if (this.#child.connected) this.#child.send(order, socket as SendHandle | undefined)
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }
}
