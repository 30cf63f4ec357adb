import { write, writeSync } from 'node:fs'
import process from 'node:process'
import pino, { type LogFn, type Logger } from 'pino'
import type { Environment } from '../config/environment.ts'

const DROPPED = 'log lines were dropped: their reader was too slow, or its disk was full'
/** Message of the line about a request. It is logged with two objects, whose members are texts, numbers and flags. */
export const REQUEST_LINE = 'request'

/** The log on standard output. */
export interface OpenLog {
  readonly log: Logger
  readonly lines: LogQueue
}

/** Opens the log. */
export function openLog({ logLevel }: Environment): OpenLog {
  const onDropped = (dropped: number): void => log.warn({ dropped }, DROPPED)
  const lines = new LogQueue(process.stdout.fd, onDropped)
  const log = pino({ level: logLevel, base: null, hooks: { logMethod } }, lines)
  return { log, lines }

  // Every call has such a line. Written at once, it takes a third of the time that pino takes to join its parts.
  function logMethod(this: Logger, args: Parameters<LogFn>, method: LogFn, level: number): void {
    const [facts, msg, record] = args as readonly unknown[]
    if (msg !== REQUEST_LINE) return method.apply(this, args)
    lines.write(requestLine(level, Date.now(), facts as object, record as object))
  }
}

/**
 * The line about a request, with the members of two objects, which have no name in common. Joining their texts takes half of
 * the time of copying them into one object.
 */
export function requestLine(level: number, time: number, facts: object, record: object): string {
  const members = `${membersOf(facts)}${precededByComma(membersOf(record))}`
  return `{"level":${level},"time":${time},${members},"msg":"${REQUEST_LINE}"}\n`
}

function membersOf(object: object): string {
  return JSON.stringify(object).slice(1, -1)
}

function precededByComma(members: string): string {
  return members && `,${members}`
}

/**
 * Maximum number of characters that wait to be written; enough for about ten thousand requests. Further lines
 * are dropped.
 */
const MAX_QUEUED = 4 * 1024 * 1024
/** Number of waiting characters from which they are written at once. */
const WRITE_AT = 12_288
/** Milliseconds after which waiting lines are written even if they are short. */
const FLUSH_INTERVAL_MS = 250
/** Milliseconds until the next attempt to write if the reader of the output accepts nothing. */
const RETRY_MS = 20
/** Maximum milliseconds for which `close` waits for a slow reader. */
const CLOSE_TIMEOUT_MS = 1_000

/**
 * A queue of lines that are written to a file, a pipe or a terminal; nobody waits for it. If the reader is
 * too slow or its disk is full, a limited number of lines is kept in order; further ones are dropped and
 * counted. pino's own destination is not used, because it would keep an unlimited number of lines, and could
 * prevent the process from ending.
 */
class LogQueue {
  readonly #file: number
  readonly #timer: NodeJS.Timeout
  /** Complete lines that are not written yet. */
  #queued = ''
  /** Bytes that are being written, or that the reader has not accepted yet. */
  #unwritten: Buffer = Buffer.alloc(0)
  #isWriting = false
  #dropped = 0
  #unreported = 0
  readonly #onDropped: (count: number) => void

  /**
   * Writes to a file descriptor. `onDropped` is called with the number of dropped lines as soon as the queue
   * has room for a line about them.
   */
  constructor(file: number, onDropped: (count: number) => void) {
    this.#file = file
    this.#onDropped = onDropped
    this.#timer = setInterval(() => this.#flush(), FLUSH_INTERVAL_MS).unref()
    process.on('exit', this.#atExit)
  }

  /** Number of lines dropped so far. */
  get dropped(): number {
    return this.#dropped
  }

  /** Adds a line with its line end to the queue, or drops it. Never waits and never throws. */
  write(line: string): void {
    if (this.#unwritten.length + this.#queued.length + line.length > MAX_QUEUED) {
      this.#dropped += 1
      this.#unreported += 1
      return
    }
    this.#queued += line
    if (this.#queued.length >= WRITE_AT) this.#write()
  }

  /** Writes the queued lines; gives up after a second if they are not read. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    const untilMs = performance.now() + CLOSE_TIMEOUT_MS
    for (this.#flush(); !this.#isEmpty && performance.now() < untilMs; this.#flush())
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
  }

  get #isEmpty(): boolean {
    return this.#unwritten.length === 0 && this.#queued === ''
  }

  #flush(): void {
    const unreported = this.#unreported
    if (unreported > 0 && this.#unwritten.length + this.#queued.length < MAX_QUEUED / 2) {
      this.#unreported = 0
      this.#onDropped(unreported)
    }
    this.#write()
  }

  #write(): void {
    if (this.#isWriting || this.#isEmpty) return
    this.#nextPiece()
    this.#isWriting = true
    write(this.#file, this.#unwritten, 0, this.#unwritten.length, (error, written) => {
      this.#isWriting = false
      if (error) {
        if (error.code === 'EAGAIN') setTimeout(() => this.#write(), RETRY_MS).unref()
        return
      }
      this.#unwritten = this.#unwritten.subarray(written)
      if (this.#unwritten.length > 0 || this.#queued.length >= WRITE_AT) this.#write()
    })
  }

  #nextPiece(): void {
    if (this.#unwritten.length > 0) return
    this.#unwritten = Buffer.from(this.#queued)
    this.#queued = ''
  }

  // Waiting lines are written synchronously, because the event loop does not run any more. At most the piece
  // that is just being written is lost.
  readonly #atExit = (): void => {
    if (this.#isWriting) this.#unwritten = this.#unwritten.subarray(this.#unwritten.length)
    try {
      for (this.#nextPiece(); this.#unwritten.length > 0; this.#nextPiece())
        this.#unwritten = this.#unwritten.subarray(writeSync(this.#file, this.#unwritten))
    } catch {}
  }
}
