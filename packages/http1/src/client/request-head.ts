const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
const TARGET = /^\/[\x21-\x7e]*$/

/**
 * Renders header lines; `headers` contains names and values alternately. Throws `TypeError` on an invalid
 * header.
 */
export function headerLines(headers: readonly string[]): string {
  let lines = ''
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] as string
    const value = headers[i + 1] as string
    // The message contains neither name nor value, because a value may be a key.
    if (!NAME.test(name) || !VALUE.test(value)) throw new TypeError('a header that no request may carry')
    lines += `${name}: ${value}\r\n`
  }
  return lines
}

/** Renders a request line. Throws `TypeError` on an invalid target. */
export function requestLine(method: 'GET' | 'DELETE' | 'POST', target: string): string {
  if (!TARGET.test(target)) throw new TypeError('a path that no request may ask for')
  return `${method} ${target} HTTP/1.1\r\n`
}
