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

/** Process among several that write to the same output: the owner of the database, or a worker's number. */
type Writer = 'owner' | number

/** Opens the log. The number of a worker is in each of its lines. */
export function openLog({ logLevel }: Environment, writer?: Writer): OpenLog {
  const onDropped = (dropped: number): void => log.warn({ dropped }, DROPPED)
  const lines = new LogQueue(process.stdout.fd, onDropped, writer === undefined ? undefined : WHOLE_PIECE)
  const log = pino({ level: logLevel, base: typeof writer === 'number' ? { worker: writer } : null }, lines)
  return { log, lines }
}
