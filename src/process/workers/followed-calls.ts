import type { WorkerProcess } from './worker-process.ts'

/** Passes settled calls on to the workers that follow those of the others. */
export class FollowedCalls {
  readonly #workers: () => readonly WorkerProcess[]
  readonly #followers = new Set<WorkerProcess>()

  constructor(workers: () => readonly WorkerProcess[]) {
    this.#workers = workers
  }

  /** Answers a worker that has started. */
  add(worker: WorkerProcess): void {
    worker.link.on('follow', (follows: boolean) => {
      if (follows) this.#followers.add(worker)
      else this.#followers.delete(worker)
      this.#tell()
    })
    worker.link.on('settled', (call) => {
      for (const follower of this.#followers) if (follower !== worker) follower.link.send('settled', call)
    })
    this.#tellOne(worker)
  }

  drop(worker: WorkerProcess): void {
    if (this.#followers.delete(worker)) this.#tell()
  }

  #tell(): void {
    for (const worker of this.#workers()) this.#tellOne(worker)
  }

  #tellOne(worker: WorkerProcess): void {
    const others = this.#followers.size - (this.#followers.has(worker) ? 1 : 0)
    worker.link.send('followed', others > 0)
  }
}
