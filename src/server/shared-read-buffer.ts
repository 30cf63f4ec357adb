import { Socket, type SocketConstructorOpts } from 'node:net'
import { MAX_PARSE_BYTES } from '../http1/llhttp.ts'

/** What comes on any connection is read into these bytes: it is looked at before anything else is read. */
const READ_BUFFER = Buffer.allocUnsafeSlow(MAX_PARSE_BYTES)

/** By no means part of Node's interface, though it has been there for fifteen years. */
const HANDLE = '_handle'

/**
 * The accepted connection as a socket that reads into bytes which all of them share, instead of 64 KiB of its
 * own for each read. Node offers that to sockets that one opens (`onread`), not to those that a server
 * accepts: the handle of one goes into a socket of our own, as a server's goes into Node's. Where there is no
 * handle to be had, it is read as ever. What is `received` is overwritten by the next read.
 */
export function withSharedReadBuffer(accepted: Socket, onData: (bytes: Buffer) => void): Socket {
  const handle: unknown = Reflect.get(accepted, HANDLE)
  if (!handle) return accepted.on('data', onData).resume()
  const options = {
    handle,
    allowHalfOpen: true,
    onread: {
      buffer: READ_BUFFER,
      callback(length: number) {
        onData(length === READ_BUFFER.length ? READ_BUFFER : READ_BUFFER.subarray(0, length))
        return true
      },
    },
  }
  // The server counts it no more.
  Reflect.set(accepted, HANDLE, null)
  accepted.destroy()
  return new Socket(options as unknown as SocketConstructorOpts)
}
