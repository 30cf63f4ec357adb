/** Step of a handshake: what to send and where to go on, or the end. */
export type HandshakeStep =
  | { readonly send: Buffer; readonly used: number; readonly next: Handshake }
  /** `used`: bytes that belonged to the handshake. */
  | { readonly opened: true; readonly used: number }
  | { readonly failure: string }
  /** More bytes are needed. */
  | undefined

/** Reads what the proxy has sent so far. */
export type Handshake = (received: Buffer) => HandshakeStep
