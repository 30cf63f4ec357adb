/** Proxy that connections to an upstream go through. */
export interface Proxy {
  readonly kind: 'http' | 'socks5'
  readonly host: string
  readonly port: number
  /** User and password for the proxy; undefined for a proxy without authentication. */
  readonly credentials: { readonly user: string; readonly password: string } | undefined
}
