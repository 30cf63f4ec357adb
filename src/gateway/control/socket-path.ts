import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'

const SOCKET_NAME = 'control.sock'
/** Maximum length of the path in bytes. Operating systems allow between 104 and 108. */
const MAX_PATH_BYTES = 100

/** A path that is short enough for a socket. It is valid until `release`. */
export interface SocketPath {
  readonly path: string
  release(): void
}

/**
 * Returns the path of the control socket in this data folder. If it is too long for a socket, the result goes
 * through the folder's file descriptor in `/proc` instead. Throws if that is necessary and the system is not
 * Linux.
 */
export function socketPath(dataDir: string): SocketPath {
  const path = join(dataDir, SOCKET_NAME)
  if (Buffer.byteLength(path) <= MAX_PATH_BYTES) return { path, release() {} }
  if (process.platform !== 'linux') {
    throw new Error(
      `the path of the data folder ${dataDir} is too long for a socket in it: choose a shorter DATA_DIR`,
    )
  }
  const folder = openSync(dataDir, 'r')
  return { path: `/proc/self/fd/${folder}/${SOCKET_NAME}`, release: () => closeSync(folder) }
}
