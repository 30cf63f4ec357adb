import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'

/** The name of a gateway's socket in its data folder. */
const SOCKET_NAME = 'control.sock'
/** The system's limit for a socket's path is 104 to 108 bytes. */
const MAX_PATH_BYTES = 100

/** A path that a socket can have; it holds until `release`. */
export interface SocketPath {
  readonly path: string
  release(): void
}

/**
 * Where the gateway on this data folder listens for commands. In a folder whose path is too long for a socket
 * it is reached through a descriptor of the folder, which is short, and which other folders for temporary
 * files do not hide.
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
