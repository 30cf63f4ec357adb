import { readdirSync, readFileSync } from 'node:fs'

/** Ticks per second of the times in /proc; 100 on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100

interface Stat {
  readonly parent: number
  /** User and system time of all threads. */
  readonly ticks: number
}

/** Seconds of CPU time that a process and all its descendants have used so far. Linux only. */
export function cpuSeconds(pid: number): number {
  const stats = new Map<number, Stat>()
  for (const name of readdirSync('/proc')) {
    const stat = /^\d+$/.test(name) ? statOf(name) : undefined
    if (stat) stats.set(Number(name), stat)
  }
  const isOurs = (id: number): boolean => {
    if (id === pid) return true
    const stat = stats.get(id)
    return stat !== undefined && stat.parent > 1 && isOurs(stat.parent)
  }
  let ticks = 0
  for (const [id, stat] of stats) if (isOurs(id)) ticks += stat.ticks
  return ticks / TICKS_PER_SECOND
}

function statOf(pid: string): Stat | undefined {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'latin1')
  } catch {
    // It ended meanwhile.
    return undefined
  }
  // The name may hold spaces and brackets; the third field comes after its last bracket.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return { parent: Number(fields[1]), ticks: Number(fields[11]) + Number(fields[12]) }
}
