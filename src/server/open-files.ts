import { readFileSync } from 'node:fs'

/**
 * Files and sockets that this process may have open at one time; undefined where the system does not tell.
 */
export function openFilesLimit(limitsFile = '/proc/self/limits'): number | undefined {
  let limits: string
  try {
    limits = readFileSync(limitsFile, 'utf8')
  } catch {
    return undefined
  }
  const [, soft] = /^Max open files\s+(\d+)/m.exec(limits) ?? []
  return soft === undefined ? undefined : Number(soft)
}
