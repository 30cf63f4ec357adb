import { readFileSync } from 'node:fs'

/** The process ids of the workers of a gateway, in the order of their starts. */
export function workerPids(owner: number): number[] {
  const text = readFileSync(`/proc/${owner}/task/${owner}/children`, 'utf8').trim()
  return text === '' ? [] : text.split(' ').map(Number)
}

/** Whether there is a process that has not ended. */
export function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}
