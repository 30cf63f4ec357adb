/**
 * Reads a URL of any scheme as a browser reads one of the web, so that its host has one spelling: `URL` keeps
 * the hosts of schemes that it does not know (`socks5`) as they are written. Null if it is no URL.
 */
export function parseWebUrl(text: string): URL | null {
  return URL.parse(text.replace(/^[^:/?#]*:/, 'http:'))
}

/**
 * Host of a URL of the web, without the brackets of an IPv6 address. Decimal, octal, hexadecimal and
 * percent-encoded addresses, full-width digits and ideographic dots are written in the usual form.
 */
export function hostOf({ hostname }: Pick<URL, 'hostname'>): string {
  return hostname.replace(/^\[|\]$/g, '')
}
