import { Socket, type SocketConstructorOpts } from 'node:net'
import { MOST_AT_ONCE } from '../http1/llhttp.ts'

/** What comes on any connection is read into these bytes: it is looked at before anything else is read. */
const BYTES = Buffer.allocUnsafeSlow(MOST_AT_ONCE)

/** By no means part of Node's interface, though it has been there for fifteen years. */
const HANDLE = '_handle'

/**
 * The accepted connection as a socket that reads into bytes which all of them share, instead of 64 KiB of its
 * own for each read. Node offers that to sockets that one opens (`onread`), not to those that a server
 * accepts: the handle of one goes into a socket of our own, as a server's goes into Node's. Where there is no
 * handle to be had, it is read as ever. What is `received` is overwritten by the next read.
 */
export function readingShared(accepted: Socket, received: (bytes: Buffer) => void): Socket {
  const handle: unknown = Reflect.get(accepted, HANDLE)
  if (!handle) return accepted.on('data', received).resume()
  const options = {
    handle,
    allowHalfOpen: true,
    onread: {
      buffer: BYTES,
      callback(length: number) {
        received(length === BYTES.length ? BYTES : BYTES.subarray(0, length))
        return true
      },
    },
  }
  // The server counts it no more.
  Reflect.set(accepted, HANDLE, null)
  accepted.destroy()
  return new Socket(options as unknown as SocketConstructorOpts)
}
