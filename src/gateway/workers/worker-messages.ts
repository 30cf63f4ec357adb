import type { FileTexts } from '../../config/read-file.ts'
/** File descriptor of a worker's socket to its owner. */
export const LINK_DESCRIPTOR = 3

/** The owner's first message to a worker. */
export interface WorkerSetup {
  /** Number of the worker, starting at 1. */
  readonly index: number
  /** Number of workers that are configured. */
  readonly planned: number
  /** Name of this run of the worker: the owner of its holds. */
  readonly name: string
  readonly port: number
  readonly configFile: string | undefined
  /** Texts of the configuration files that are in effect; the files may have changed since. */
  readonly texts: FileTexts
}

/** Message of the owner to each worker, sent whenever it changes. */
export interface WorkersState {
  /** Number of running workers. */
  readonly count: number
  /** Whether all configured workers take calls. */
  readonly isComplete: boolean
}

/** The last message of a worker, if it gets to send one. */
export interface WorkerEnd {
  /** Number of calls that could not be settled. */
  readonly unresolved: number
}
