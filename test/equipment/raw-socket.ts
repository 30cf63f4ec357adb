import { connect, type Socket } from 'node:net'

/** A connection on which a test writes its own bytes. */
export interface RawConnection {
  readonly socket: Socket
  /** Settles with everything received, once the other side has closed the connection. */
  closed(): Promise<string>
  /** Settles with everything received so far, once that contains this text. */
  until(text: string): Promise<string>
}

/** Connects from a local address, and writes the bytes unchanged. */
export function rawConnection(
  port: number,
  bytes: string | Buffer,
  localAddress = '127.0.0.1',
): RawConnection {
  const socket = connect({ port, host: '127.0.0.1', localAddress })
  socket.write(bytes)
  let received = ''
  socket.on('error', () => {})
  socket.on('data', (chunk: Buffer) => {
    received += chunk.toString('latin1')
  })
  const closed = new Promise<string>((resolve) => {
    socket.on('close', () => resolve(received))
  })
  return {
    socket,
    closed: () => closed,
    until: (text) =>
      new Promise((resolve, reject) => {
        if (received.includes(text)) return resolve(received)
        // Searches only the new bytes, because earlier ones may be megabytes.
        let end = received.slice(-text.length)
        const look = (chunk: Buffer): void => {
          end += chunk.toString('latin1')
          if (end.includes(text)) {
            socket.off('data', look)
            resolve(received)
          }
          end = end.slice(-text.length)
        }
        socket.on('data', look)
        socket.on('close', () => reject(new Error(`closed without ${text}: ${received}`)))
      }),
  }
}
