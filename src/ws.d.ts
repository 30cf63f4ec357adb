/** The part of the package `ws` that this project uses; its own types are a package that would have to follow its versions. */
declare module 'ws' {
  import type { EventEmitter } from 'node:events'
  import type { Socket } from 'node:net'
  import type { Duplex } from 'node:stream'

  export class WebSocket extends EventEmitter {
    static readonly OPEN: 1
    constructor(
      url: string | URL,
      protocols: readonly string[],
      options: {
        readonly headers: Readonly<Record<string, string>>
        readonly perMessageDeflate?: boolean
        readonly maxPayload?: number
        readonly maxBufferedChunks?: number
        readonly handshakeTimeout?: number
        readonly createConnection?: () => Socket
      },
    )
    /** The subprotocol that the server has chosen; empty if none. */
    readonly protocol: string
    readonly readyState: 0 | 1 | 2 | 3
    /** Bytes that were given to `send` and are not sent yet. */
    readonly bufferedAmount: number
    send(data: string | Buffer, options: { readonly binary: boolean }, sent?: (error?: Error) => void): void
    ping(): void
    close(code: number, reason?: string): void
    terminate(): void
    readonly isPaused: boolean
    pause(): void
    resume(): void
  }

  export class WebSocketServer extends EventEmitter {
    constructor(options: {
      readonly noServer: true
      readonly clientTracking: false
      readonly perMessageDeflate: false
      readonly maxPayload: number
      /** Maximum reads of an unfinished frame. */
      readonly maxBufferedChunks?: number
      readonly closeTimeout: number
      readonly handleProtocols: (offered: ReadonlySet<string>) => string | false
    })
    handleUpgrade(
      request: { readonly method: string; readonly headers: object; readonly id: string },
      socket: Duplex,
      head: Buffer,
      opened: (socket: WebSocket) => void,
    ): void
  }
}
