import { parseRecord } from '../../protocols/json/record.ts'

/** Error types of the messages protocol, by the name of an exception in lower case. */
const ERROR_TYPES: ReadonlyMap<string, string> = new Map([
  ['throttlingexception', 'rate_limit_error'],
  ['modelnotreadyexception', 'rate_limit_error'],
  ['servicequotaexceededexception', 'rate_limit_error'],
  ['serviceunavailableexception', 'overloaded_error'],
  ['validationexception', 'invalid_request_error'],
  ['resourcenotfoundexception', 'not_found_error'],
  ['accessdeniedexception', 'permission_error'],
  ['unrecognizedclientexception', 'authentication_error'],
  ['invalidsignatureexception', 'authentication_error'],
  ['expiredtokenexception', 'authentication_error'],
])

/**
 * Converts an exception to an error of the messages protocol. `name` may be followed by a colon and a URL.
 */
export function errorBody(name: string, payload: Buffer, told?: string): Buffer {
  const body = parseRecord(payload.toString())
  const [code = ''] = name.split(':')
  const words = [body?.['message'], body?.['Message'], body?.['originalMessage'], told]
  const message = words.find((text) => typeof text === 'string' && text !== '') ?? `Bedrock failed: ${code}`
  const error = { type: ERROR_TYPES.get(code.toLowerCase()) ?? 'api_error', message, code }
  return Buffer.from(JSON.stringify({ type: 'error', error }))
}
