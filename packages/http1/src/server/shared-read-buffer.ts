import { Socket, type SocketConstructorOpts } from 'node:net'
import { MAX_PARSE_BYTES } from '../parser/llhttp.ts'

/** Buffer that all connections read into: its bytes are handled before the next read. */
const READ_BUFFER = Buffer.allocUnsafeSlow(MAX_PARSE_BYTES)

/** Property of Node's sockets that is not public, but has existed for fifteen years. */
const HANDLE = '_handle'

/**
 * Wraps an accepted connection in a socket that reads into one shared buffer, instead of 64 KiB of its own
 * per read. Node offers that (`onread`) only to sockets that a program opens, so the handle moves into a
 * socket of our own. Without a handle, the socket is read as usual. The next read overwrites what `onData`
 * was given.
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
  // Releases the accepted socket, whose handle has moved.
  Reflect.set(accepted, HANDLE, null)
  accepted.destroy()
  return new Socket(options as unknown as SocketConstructorOpts)
}
