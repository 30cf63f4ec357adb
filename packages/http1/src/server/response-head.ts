/** Names and values of response headers. */
export type ResponseHeaders = Readonly<Record<string, string>>

/** Reason phrases by status. */
const REASON_PHRASES = new Map([
  [200, 'OK'],
  [201, 'Created'],
  [204, 'No Content'],
  [302, 'Found'],
  [304, 'Not Modified'],
  [400, 'Bad Request'],
  [401, 'Unauthorized'],
  [402, 'Payment Required'],
  [403, 'Forbidden'],
  [404, 'Not Found'],
  [405, 'Method Not Allowed'],
  [406, 'Not Acceptable'],
  [408, 'Request Timeout'],
  [409, 'Conflict'],
  [410, 'Gone'],
  [413, 'Payload Too Large'],
  [415, 'Unsupported Media Type'],
  [417, 'Expectation Failed'],
  [422, 'Unprocessable Entity'],
  [424, 'Failed Dependency'],
  [426, 'Upgrade Required'],
  [429, 'Too Many Requests'],
  [431, 'Request Header Fields Too Large'],
  [500, 'Internal Server Error'],
  [501, 'Not Implemented'],
  [502, 'Bad Gateway'],
  [503, 'Service Unavailable'],
  [504, 'Gateway Timeout'],
  [529, 'Overloaded'],
])

const NAME = /^[\w!#$%&'*+.^`|~-]+$/
// biome-ignore lint/suspicious/noControlCharactersInRegex: a value must not contain them
const NOT_IN_VALUE = /[^\t\x20-\x7e\x80-\xff]/
const SECOND_MS = 1_000

let second = 0
let date = ''

/**
 * Renders the head of a response without the final empty line: status, headers, date. A header in `headers`
 * replaces the one with the same name in `more`. Throws `TypeError` on a name or value that would break the
 * framing.
 */
export function responseHead(status: number, headers: ResponseHeaders, more?: ResponseHeaders): string {
  let head = `HTTP/1.1 ${status} ${REASON_PHRASES.get(status) ?? ''}\r\n`
  for (const name in headers) head += headerLine(name, headers[name] as string)
  for (const name in more) if (!(name in headers)) head += headerLine(name, more[name] as string)
  return `${head}date: ${dateHeader()}\r\n`
}

/** Renders a header. Throws `TypeError` on a name or value that would break the framing. */
export function headerLine(name: string, value: string): string {
  if (NOT_IN_VALUE.test(value) || !isValidName(name)) throw new TypeError(`no header: ${name}`)
  return `${name}: ${value}\r\n`
}

const validNames = new Set<string>()

// Valid names are remembered, because the same few names recur in every response.
function isValidName(name: string): boolean {
  if (validNames.has(name)) return true
  if (!NAME.test(name)) return false
  validNames.add(name)
  return true
}

function dateHeader(): string {
  const passed = Math.floor(Date.now() / SECOND_MS)
  if (passed !== second) {
    second = passed
    date = new Date(passed * SECOND_MS).toUTCString()
  }
  return date
}
