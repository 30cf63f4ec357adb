import { readdirSync, readFileSync } from 'node:fs'

/** The fields of /proc/PID/stat after the name, for every process. */
export function allStats(): ReadonlyMap<number, readonly string[]> {
  const stats = new Map<number, readonly string[]>()
  for (const name of readdirSync('/proc')) {
    const fields = /^\d+$/.test(name) ? statOf(name) : undefined
    if (fields) stats.set(Number(name), fields)
  }
  return stats
}

/** A process id and those of all its descendants. */
export function treeOf(pid: number, stats = allStats()): number[] {
  const isOurs = (id: number): boolean => {
    if (id === pid) return true
    const parent = Number(stats.get(id)?.[1] ?? 0)
    return parent > 1 && isOurs(parent)
  }
  return [...stats.keys()].filter(isOurs)
}

function statOf(pid: string): string[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name may contain spaces and brackets; the third field follows the last bracket.
    return text.slice(text.lastIndexOf(')') + 2).split(' ')
  } catch {
    // The process has ended during the read.
    return undefined
  }
}
