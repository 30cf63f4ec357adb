import { type Fields, fields, string } from '../../src/simulator/fields.ts'
import type { UsageRow } from '../../test/equipment/database.ts'
import type { Ended } from './run-program.ts'

/** What one case left behind. */
export interface Traces {
  readonly ended: Ended
  /** What the answer has to quote. */
  readonly words: readonly string[]
  /** The usage rows of its key. */
  readonly usage: readonly UsageRow[]
  /** What the gateway logged meanwhile. */
  readonly log: string
  /** Where the agent's calls are expected. */
  readonly path: string
}

/** Everything that is wrong with a case; nothing where it passed. */
export function faults({ ended, words, usage, log, path }: Traces): string[] {
  const lines = log.split('\n').map(parsed)
  const requests = lines.filter(({ msg }) => msg === 'request')
  const calls = requests.filter((line) => line.path === path)
  const found = [
    ...(ended.timedOut
      ? ['it did not end in time']
      : ended.code === 0
        ? []
        : [`it ended with ${ended.code}`]),
    ...words.filter((word) => !ended.out.includes(word)).map((word) => `the answer does not quote ${word}`),
    ...(calls.length < 2 ? [`${calls.length} calls of ${path}: no round trip`] : []),
    ...requests
      .filter(({ status }) => typeof status !== 'number' || status >= 400)
      .map(({ method, path, status }) => `${string(method)} ${string(path)} got ${String(status)}`),
    ...calls
      .filter(({ failure }) => failure !== undefined)
      .map(({ failure }) => `an attempt failed: ${string(failure)}`),
    ...lines
      .filter(({ level }) => typeof level === 'number' && level >= 40)
      .map((line) => `the gateway logged ${JSON.stringify(line)}`),
    ...(usage.length === calls.length ? [] : [`${usage.length} usage rows for ${calls.length} calls`]),
    ...usage
      .filter(({ reason, quota }) => reason !== 'complete' || quota <= 0)
      .map(({ model, reason, quota }) => `a call of ${model} was charged ${quota} as ${reason}`),
  ]
  // Agents try again and again: once is enough.
  return [...new Set(found)]
}

function parsed(line: string): Fields {
  try {
    return fields(JSON.parse(line))
  } catch {
    return {}
  }
}
