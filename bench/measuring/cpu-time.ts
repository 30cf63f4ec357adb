import { readdirSync, readFileSync } from 'node:fs'
import { treeOf } from './process-tree.ts'

/**
 * Seconds of CPU time, user and system, that the threads of a process and its descendants have used so far,
 * with nanosecond precision. Threads that have ended are not counted. Linux only.
 */
export function cpuSeconds(pid: number): number {
  return treeOf(pid).reduce((sum, id) => sum + ownCpuSeconds(id), 0)
}

/** The same for one process without its descendants. */
export function ownCpuSeconds(pid: number): number {
  return threadsOf(pid).reduce((sum, one) => sum + one, 0) / 1e9
}

function threadsOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map((thread) => runNanoseconds(`/proc/${pid}/task/${thread}`))
  } catch {
    // The process has ended during the read.
    return []
  }
}

function runNanoseconds(thread: string): number {
  try {
    return Number(readFileSync(`${thread}/schedstat`, 'latin1').split(' ', 1)[0])
  } catch {
    // The thread has ended during the read.
    return 0
  }
}
