import { connect, type Socket } from 'node:net'

/** A connection on which a test writes its own bytes. */
export interface RawConnection {
  readonly socket: Socket
  /** Settles with everything received once the other side ended the connection. */
  closed(): Promise<string>
  /** Settles with everything received so far, once that contains this text. */
  until(text: string): Promise<string>
}

/** Connects, from an address of this machine, and writes the bytes as they are. */
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
        const look = (): void => {
          if (received.includes(text)) resolve(received)
        }
        socket.on('data', look)
        socket.on('close', () => reject(new Error(`closed without ${text}: ${received}`)))
        look()
      }),
  }
}
