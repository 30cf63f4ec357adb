/** An address on which a server listens. */
export interface ListenAddress {
  readonly host: string
  /** Port number; 0 for any free one. */
  readonly port: number
}

const FORM = /^(?:\[([0-9a-f:.]+)\]|([\w.-]+)):(\d{1,5})$/i
const WILDCARDS: ReadonlySet<string> = new Set(['0.0.0.0', '::'])

/** Parses `HOST:PORT`, with an IPv6 address in brackets; returns undefined for any other text. */
export function parseListenAddress(text: string): ListenAddress | undefined {
  const [, inBrackets, plain, digits] = FORM.exec(text) ?? []
  const host = inBrackets ?? plain
  const port = Number(digits)
  return host !== undefined && port >= 1 && port <= 65_535 ? { host, port } : undefined
}

/** Whether two servers cannot listen on these addresses at the same time. */
export function isSameListenAddress(one: ListenAddress, other: ListenAddress): boolean {
  const hosts = [one.host, other.host]
  const isSameHost = one.host === other.host || hosts.some((host) => WILDCARDS.has(host))
  return one.port === other.port && isSameHost
}
