import process from 'node:process'

const BYTES = Buffer.alloc(16 << 20, 'a b ')

/**
 * Milliseconds in which this machine currently reads 16 MB byte by byte: about 15 on an idle machine. Time
 * limits are multiples of it, so that a slow or busy machine has more time, but quadratic work still exceeds
 * them.
 */
export function paceMs(): number {
  const began = performance.now()
  let sum = 0
  for (let at = 0; at < BYTES.length; at++) sum += BYTES[at] ?? 0
  if (sum === 0) throw new Error('nothing was looked at')
  return performance.now() - began
}

/** Milliseconds of CPU time that this process has used; other processes do not affect it. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}
