import { readFileSync } from 'node:fs'

/** Limit on the open files and sockets of this process; undefined if the system has no such file. */
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
