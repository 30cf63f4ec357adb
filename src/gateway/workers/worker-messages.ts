import type { FileTexts } from '../../config/read-file.ts'
/** File descriptor of the socket by which a worker communicates with the main process. */
export const LINK_DESCRIPTOR = 3

/** The main process's first message to a worker. */
export interface WorkerSetup {
  /** Number of the worker, starting at 1. */
  readonly index: number
  /** Number of workers that are configured. */
  readonly planned: number
  /** Unique name of this run of the worker, under which it reserves and leases quota. */
  readonly name: string
  readonly port: number
  readonly configFile: string | undefined
  /** Texts of the configuration files as applied; the files themselves may have changed since. */
  readonly texts: FileTexts
}

/** Message of the main process to each worker when the number of workers changes. */
export interface WorkersState {
  /** Number of running workers. */
  readonly count: number
  /** Whether all configured workers take calls. */
  readonly isComplete: boolean
}

/** The last message of a worker before it ends; a crashed worker sends none. */
export interface WorkerEnd {
  /** Number of calls that could not be charged. */
  readonly unresolved: number
}
