import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'

/**
 * File that names the gateway on a data folder: its process id and its host. It serves the message of a
 * second start alone. The lock decides whether a gateway runs, so a file that a killed one leaves behind does
 * no harm.
 */
const fileIn = (folder: string): string => join(folder, 'lock.pid')

/** Names this process in a data folder that it has locked. */
export function nameProcess(folder: string): void {
  removeProcessName(folder)
  try {
    writeFileSync(fileIn(folder), `${process.pid} ${hostname()}\n`, { mode: 0o600, flag: 'wx' })
  } catch {
    // A full disk is no reason not to start: a second start then says "another process".
  }
}

/** Removes the name from a data folder that this process still holds. */
export function removeProcessName(folder: string): void {
  try {
    rmSync(fileIn(folder), { force: true })
  } catch {
    // A name that stays does no harm.
  }
}

/** The process that holds a locked data folder, in words. */
export function processOn(folder: string): string {
  const [, id, host] = /^(\d+) (\S+)\n$/.exec(textOf(fileIn(folder))) ?? []
  if (id === undefined) return 'another process'
  if (host !== hostname()) return `process ${id} on ${host}`
  return runs(Number(id)) ? `process ${id}` : 'another process'
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

// A holder that has not named itself yet may find the name of one that was killed.
function runs(id: number): boolean {
  try {
    return process.kill(id, 0)
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
