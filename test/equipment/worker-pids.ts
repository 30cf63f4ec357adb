import { readFileSync } from 'node:fs'

/** The process ids of a gateway's workers, in the order of their starts. */
export function workerPids(owner: number): number[] {
  const text = readFileSync(`/proc/${owner}/task/${owner}/children`, 'utf8').trim()
  return text === '' ? [] : text.split(' ').map(Number)
}

/** Whether the process is running. */
export function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}
