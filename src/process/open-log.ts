import process from 'node:process'
import pino, { type Logger } from 'pino'
import type { Environment } from '../config/environment.ts'
import { LogQueue } from './log-queue.ts'

const DROPPED = 'log lines were dropped: their reader was too slow, or its disk was full'
/** Bytes that every system writes to a pipe in one piece. */
const WHOLE_PIECE = 4_096

/** Log on standard output. */
export interface OpenLog {
  readonly log: Logger
  readonly lines: LogQueue
}

/** Opens the log. `worker`: the number of the process among several that write to the same output; in each line. */
export function openLog({ logLevel }: Environment, worker?: number): OpenLog {
  const onDropped = (dropped: number): void => log.warn({ dropped }, DROPPED)
  const lines = new LogQueue(process.stdout.fd, onDropped, worker === undefined ? undefined : WHOLE_PIECE)
  const log = pino({ level: logLevel, base: worker === undefined ? null : { worker } }, lines)
  return { log, lines }
}
