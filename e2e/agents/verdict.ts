import { type Fields, asFields, asString } from '@sluice/simulator/fields'
import type { UsageRow } from '../../test/fixtures/database.ts'
import type { Ended } from './run-program.ts'

/** What one case left behind. */
export interface Traces {
  readonly ended: Ended
  /** The words that the answer must quote. */
  readonly words: readonly string[]
  /** Files that the agent had to write, but did not write as required. */
  readonly wrongFiles: readonly string[]
  /** The usage rows of the case's key. */
  readonly usage: readonly UsageRow[]
  /** The gateway's log during the case. */
  readonly log: string
  /** The path that the agent is expected to call. */
  readonly path: string
  /** Milliseconds from the agent's first call to its end, and their maximum. */
  readonly workedMs: number
  readonly limitMs: number
  /** How the agent sends its calls. */
  readonly transport: 'http' | 'websocket'
}

/** Faults of a case; empty where it passed. */
export function findFaults({
  ended,
  words,
  wrongFiles,
  usage,
  log,
  path,
  workedMs,
  limitMs,
  transport,
}: Traces): string[] {
  const lines = log.split('\n').map(parsed)
  const requests = lines.filter(({ msg }) => msg === 'request')
  // An upgrade is no call, and neither is a frame of a WebSocket that was only checked.
  const calls = requests.filter((line) => line.path === path && line.method === 'POST' && !isCheck(line))
  const found = [
    ...(ended.timedOut
      ? ['it did not end in time']
      : ended.code === 0
        ? []
        : [`it ended with ${ended.code}`]),
    ...(workedMs > limitMs && !ended.timedOut
      ? [`it took ${(workedMs / 1000).toFixed(1)} s, more than ${limitMs / 1000} s`]
      : []),
    ...words.filter((word) => !ended.out.includes(word)).map((word) => `the answer does not quote ${word}`),
    ...wrongFiles.map((path) => `it did not write ${path} as it had to`),
    ...(calls.length < 2 ? [`${calls.length} calls of ${path}: no round trip`] : []),
    ...requests
      .filter(({ status }) => typeof status !== 'number' || status >= 400)
      .map(({ method, path, status }) => `${asString(method)} ${asString(path)} got ${String(status)}`),
    ...calls
      .filter(({ failure }) => failure !== undefined)
      .map(({ failure }) => `an attempt failed: ${asString(failure)}`),
    ...lines
      .filter(({ level }) => typeof level === 'number' && level >= 40)
      .map((line) => `the gateway logged ${JSON.stringify(line)}`),
    ...(usage.length === calls.length ? [] : [`${usage.length} usage rows for ${calls.length} calls`]),
    ...usage
      .filter((row) => row.transport !== transport)
      .map((row) => `a call of ${row.model} came by ${row.transport}`),
    ...usage
      .filter(({ reason, quota }) => reason !== 'complete' || quota <= 0)
      .map(({ model, reason, quota }) => `a call of ${model} was charged ${quota} as ${reason}`),
  ]
  // Agents retry, so that each fault is reported once.
  return [...new Set(found)]
}

function isCheck({ status }: Fields): boolean {
  return status === 202 || status === 204
}

function parsed(line: string): Fields {
  try {
    return asFields(JSON.parse(line))
  } catch {
    return {}
  }
}

/**
 * Milliseconds between the agent's first call and its end; its start, which is slow on a busy machine, does
 * not count.
 */
export function workedMs(log: string, path: string, endedAt: number): number {
  const starts = log
    .split('\n')
    .map(parsed)
    .filter((line) => line.msg === 'request' && line.path === path)
    .map(({ time, ms }) => Number(time) - Number(ms))
  return starts.length === 0 ? 0 : endedAt - Math.min(...starts)
}
