import { type ChildProcess, type SendHandle, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import process from 'node:process'
import { Link } from '../../ipc/link.ts'
import type { SocketInstruction } from './sockets-from-owner.ts'
import { LINK_DESCRIPTOR } from './worker-messages.ts'
import type { SharedSocket } from './shared-sockets.ts'

/** How a worker's process has ended. */
export interface ProcessEnd {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** A worker process, as the main process sees it. */
export class WorkerProcess {
  readonly index: number
  /** Unique name of this run, under which the worker reserves and leases quota. */
  readonly name = randomUUID()
  readonly link: Link
  /** Resolves when the process has ended and everything that it sent has been read; never rejects. */
  readonly ended: Promise<ProcessEnd>
  /** Whether the worker accepts calls. */
  isServing = false
  readonly #child: ChildProcess

  private constructor(index: number, child: ChildProcess) {
    this.index = index
    this.#child = child
    this.link = new Link(child.stdio[LINK_DESCRIPTOR] as Socket)
    // Errors of sent messages are ignored, because they mean that the process is ending.
    child.on('error', () => {})
    const exited = new Promise<ProcessEnd>((resolve) => {
      child.once('exit', (code, signal) => resolve({ code, signal }))
    })
    this.ended = Promise.all([exited, this.link.closed]).then(([end]) => end)
    // A worker without its connection to the main process is useless, and its open calls can be charged only
    // after it has ended.
    void this.link.closed.then(() => this.kill())
  }

  /** Starts a worker process with the same options as this process. Rejects if the system cannot start it. */
  static async start(index: number, variables: ReadonlyMap<string, string>): Promise<WorkerProcess> {
    const [, program = ''] = process.argv
    const child = spawn(process.execPath, [...process.execArgv, program, 'worker'], {
      stdio: ['ignore', 'inherit', 'inherit', 'pipe', 'ipc'],
      // The worker gets the configuration's text by message, because the file may no longer exist when a
      // worker is replaced.
      env: { ...Object.fromEntries(variables), GATEWAY_CONFIG: '' },
    })
    await once(child, 'spawn')
    return new WorkerProcess(index, child)
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  /** Gives the worker an additional socket to listen on. */
  giveSocket(place: number, socket: SharedSocket): void {
    this.#order({ give: place }, socket)
  }

  /** Makes the worker stop listening on a socket. */
  takeSocketBack(place: number): void {
    this.#order({ takeBack: place })
  }

  #order(order: SocketInstruction, socket?: SharedSocket): void {
    if (this.#child.connected) this.#child.send(order, socket as SendHandle | undefined)
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }
}
