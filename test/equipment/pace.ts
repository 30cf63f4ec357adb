import process from 'node:process'

const BYTES = Buffer.alloc(16 << 20, 'a b ')

/**
 * Milliseconds in which this machine looks at 16 MB byte by byte at the moment: some 15 where nothing else
 * runs. Bounds on the time of other work are multiples of it, so that a slow or busy machine is given more;
 * what takes time by the square exceeds them all the same.
 */
export function paceMs(): number {
  const began = performance.now()
  let sum = 0
  for (let at = 0; at < BYTES.length; at++) sum += BYTES[at] ?? 0
  if (sum === 0) throw new Error('nothing was looked at')
  return performance.now() - began
}

/**
 * Milliseconds of processor time that this process has used: others that want the processor too do not count.
 */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}
