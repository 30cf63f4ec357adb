import { type LiveWish, nameOf } from '../../management/usage/live-source.ts'
import type { FollowedTurn } from '../calls-of-workers.ts'
import type { WorkerProcess } from './worker-process.ts'

/** Passes settled calls on to the workers that follow those of the others. */
export class FollowedCalls {
  readonly #workers: () => readonly WorkerProcess[]
  /** Wishes of each worker, by their names. */
  readonly #followers = new Map<WorkerProcess, ReadonlyMap<string, LiveWish>>()

  constructor(workers: () => readonly WorkerProcess[]) {
    this.#workers = workers
  }

  /** Answers a worker that has started. */
  add(worker: WorkerProcess): void {
    worker.link.on('follow', (wishes: readonly LiveWish[]) => {
      this.#followers.set(worker, new Map(wishes.map((wish) => [nameOf(wish), wish])))
      this.#tell()
    })
    worker.link.on('settled', (turn: FollowedTurn) => {
      for (const [follower, wishes] of this.#followers)
        if (follower !== worker && wishes.has(turn.name)) follower.link.send('settled', turn)
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
    const others = [...this.#followers].filter(([follower]) => follower !== worker)
    const wishes = new Map(others.flatMap(([, wanted]) => [...wanted]))
    worker.link.send('followed', [...wishes.values()])
  }
}
