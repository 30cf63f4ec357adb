import { readFileSync } from 'node:fs'

/** Milliseconds of a tick in /proc: a hundredth of a second on every Linux that Node.js supports. */
const TICK_MS = 10

/** CPU milliseconds that a process has used, in all its threads and in the kernel. */
export function processCpuMs(pid: number): number {
  return cpuMs(`/proc/${pid}/stat`)
}

/** CPU milliseconds of a process's main thread, which serves its calls. */
export function mainThreadCpuMs(pid: number): number {
  return cpuMs(`/proc/${pid}/task/${pid}/stat`)
}

function cpuMs(path: string): number {
  const fields = readFileSync(path, 'utf8').split(') ').at(-1)?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS
}
