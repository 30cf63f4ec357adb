/** File descriptor of a worker's socket to its owner. */
export const LINK_DESCRIPTOR = 3

/** The owner's first message to a worker. */
export interface WorkerSetup {
  /** Number of the worker, from 1. */
  readonly index: number
  /** Number of workers that are configured. */
  readonly planned: number
  /** Name of this run of the worker: the owner of its holds. */
  readonly name: string
  readonly port: number
  readonly configFile: string | undefined
  /** Text of the configuration file that is in force, which the file itself may no longer have. */
  readonly fileText: string
}

/** Message of the owner to each worker whenever it changes. */
export interface CrewState {
  /** Workers that run. */
  readonly count: number
  /** Whether all that there should be take calls. */
  readonly isComplete: boolean
}

/** The last message of a worker, as far as it gets. */
export interface WorkerEnd {
  /** Calls that could not be settled. */
  readonly unresolved: number
}
