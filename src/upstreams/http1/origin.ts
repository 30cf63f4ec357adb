/** Where the connections of one destination go. */
export interface Origin {
  readonly host: string
  readonly port: number
  readonly isSecure: boolean
  /** Of the latest TLS connection: the next one begins where it ended. */
  session: Buffer | undefined
}

/** The origin of an `http:` or `https:` URL. */
export function originOf({ protocol, hostname, port }: URL): Origin {
  const isSecure = protocol === 'https:'
  return {
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? (isSecure ? 443 : 80) : Number(port),
    isSecure,
    session: undefined,
  }
}
