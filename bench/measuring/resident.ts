import { readFileSync } from 'node:fs'
import { treeOf } from './process-tree.ts'

/** Kilobytes (1024 bytes) of resident memory of a process and its descendants. Linux only. */
export function residentKilobytes(pid: number): number {
  return treeOf(pid).reduce((sum, id) => sum + residentOf(id), 0)
}

function residentOf(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0)
}
