import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'

const SOCKET_NAME = 'control.sock'
/** Operating systems limit the path of a socket to between 104 and 108 bytes. */
const MAX_PATH_BYTES = 100

/** Path short enough for a socket, valid until `release`. */
export interface SocketPath {
  readonly path: string
  release(): void
}

/**
 * Returns the path of the control socket in this data folder. If that path is too long for a socket, it goes
 * through a descriptor of the folder in `/proc`, which is short and does not depend on a shared folder for
 * temporary files. Throws if the system has no `/proc`.
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
