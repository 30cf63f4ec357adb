import { allStats, treeOf } from './process-tree.ts'

/** Ticks per second of the times in /proc; 100 on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100

/**
 * Seconds of CPU time, user and system, that all threads of a process and its descendants have used so far.
 * Linux only.
 */
export function cpuSeconds(pid: number): number {
  const stats = allStats()
  const ticks = treeOf(pid, stats).reduce((sum, id) => {
    const fields = stats.get(id)
    return sum + Number(fields?.[11] ?? 0) + Number(fields?.[12] ?? 0)
  }, 0)
  return ticks / TICKS_PER_SECOND
}
