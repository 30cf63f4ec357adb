import { readFileSync } from 'node:fs'

/** Milliseconds in a tick of the times in /proc: a hundredth of a second on every Linux that Node runs on. */
const TICK_MS = 10

/** CPU milliseconds that a process has used, all threads and the kernel's part included. */
export function processCpuMs(pid: number): number {
  return cpuMs(`/proc/${pid}/stat`)
}

/** CPU milliseconds that the main thread of a process has used, on which its calls are served. */
export function mainThreadCpuMs(pid: number): number {
  return cpuMs(`/proc/${pid}/task/${pid}/stat`)
}

function cpuMs(path: string): number {
  const fields = readFileSync(path, 'utf8').split(') ').at(-1)?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS
}
