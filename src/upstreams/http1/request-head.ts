const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
const TARGET = /^\/[\x21-\x7e]*$/

/**
 * Headers as they go out, one line each; `headers` are names and values in turn. Throws where a line would
 * not be one.
 */
export function headerLines(headers: readonly string[]): string {
  let lines = ''
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] as string
    const value = headers[i + 1] as string
    // Neither is told: a value may be a key.
    if (!NAME.test(name) || !VALUE.test(value)) throw new TypeError('a header that no request may carry')
    lines += `${name}: ${value}\r\n`
  }
  return lines
}

/** The line that a POST of `target` begins with. Throws where a target would be more than one. */
export function requestLine(target: string): string {
  if (!TARGET.test(target)) throw new TypeError('a path that no request may ask for')
  return `POST ${target} HTTP/1.1\r\n`
}
