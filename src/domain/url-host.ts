/**
 * Parses a URL of any scheme as a browser parses a web URL, so that its host has one notation; `URL` leaves
 * the hosts of unknown schemes (`socks5`) unchanged. Null if the text is not a URL.
 */
export function parseWebUrl(text: string): URL | null {
  return URL.parse(text.replace(/^[^:/?#]*:/, 'http:'))
}

/**
 * Host of a web URL, without the brackets of an IPv6 address. Decimal, octal, hexadecimal and percent-encoded
 * addresses, full-width digits and ideographic dots are normalized.
 */
export function hostOf({ hostname }: Pick<URL, 'hostname'>): string {
  return hostname.replace(/^\[|\]$/g, '')
}
