import { readdirSync, readFileSync } from 'node:fs'
import { treeOf } from '../process-tree.ts'

/**
 * Microseconds for which the threads of a process and its descendants have run, from the scheduler's own
 * account: clock ticks are too coarse for differences of one per cent. Linux only.
 */
export function cpuMicros(pid: number): number {
  const nanoseconds = treeOf(pid).flatMap((id) =>
    readdirSync(`/proc/${id}/task`).map((thread) => {
      const [ran = '0'] = readFileSync(`/proc/${id}/task/${thread}/schedstat`, 'latin1').split(' ')
      return Number(ran)
    }),
  )
  return nanoseconds.reduce((sum, one) => sum + one, 0) / 1000
}
