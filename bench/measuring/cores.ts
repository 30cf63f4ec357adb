import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** CPU cores for the measured program and for everything around it; undefined if they cannot be separated. */
export interface Cores {
  readonly measured: string
  readonly others: string
}

/**
 * The first core for the measured program and the others for the load, if there are at least two cores and
 * `taskset`.
 */
export const cores: Cores | undefined = split()

function split(): Cores | undefined {
  if (spawnSync('taskset', ['--version']).error) return undefined
  const allowed = /Cpus_allowed_list:\s+(\S+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? ''
  const [measured, ...others] = allowed.split(',').flatMap((range) => {
    const [first = 0, last = first] = range.split('-').map(Number)
    return Array.from({ length: last - first + 1 }, (_, index) => first + index)
  })
  return others.length > 0 ? { measured: String(measured), others: others.join(',') } : undefined
}
