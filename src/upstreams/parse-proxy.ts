import type { Proxy } from '@sluice/http1'
import { hostOf, parseWebUrl } from '../domain/metadata-address.ts'

/** Default ports of proxies. */
const PORTS = { http: 80, socks5: 1080 } as const

/**
 * Parses a proxy's URL as described in `docs/configuration.md: Channels`; undefined if the text is not one.
 */
export function parseProxy(text: string): Proxy | undefined {
  const [, scheme = ''] = /^(https?|socks5h?):\/\//i.exec(text) ?? []
  const url = scheme === '' || /[\s\\]/.test(text) ? null : parseWebUrl(text)
  if (!url || scheme.toLowerCase() === 'https' || url.pathname !== '/' || /[?#]/.test(text)) return undefined
  const kind = scheme.toLowerCase() === 'http' ? 'http' : 'socks5'
  const user = decoded(url.username)
  const password = decoded(url.password)
  if (user === undefined || password === undefined) return undefined
  if (Buffer.byteLength(user) > 255 || Buffer.byteLength(password) > 255) return undefined
  return {
    kind,
    host: hostOf(url),
    port: portIn(text) ?? PORTS[kind],
    credentials: user === '' && password === '' ? undefined : { user, password },
  }
}

// The port is read from the text, because `URL` omits a port that is the default of the scheme.
function portIn(text: string): number | undefined {
  const port = /:(\d+)\/?$/.exec(text)?.[1]
  return port === undefined ? undefined : Number(port)
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
